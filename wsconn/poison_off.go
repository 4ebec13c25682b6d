//go:build !duetpoison

package wsconn

const poison = false
