//go:build !duetpoison

package wsconn

func poisonBytes([]byte) {}
