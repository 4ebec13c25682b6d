//go:build duetpoison

package wsconn

// poison has the bytes of every buffer overwritten when it is given back, so that tests notice who still reads it.
const poison = true
