package wsconn

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/coder/websocket"
)

// AcceptError is why a request did not become a connection.
type AcceptError struct {
	Status int // of the answer
	Err    error
}

func (e *AcceptError) Error() string {
	return fmt.Sprintf("wsconn: accept: %s (status %d)", strings.TrimPrefix(e.Err.Error(), "wsconn: "), e.Status)
}

func (e *AcceptError) Unwrap() error { return e.Err }

// Accept makes a Conn of a WebSocket handshake request. It takes the connection out of net/http, so that the
// request's context says nothing about it any more. Nil opts means the defaults.
//
// On an error the request has been answered, and the error is an *AcceptError: 400, 405, 426 or 505 for what is no
// handshake over HTTP/1.1, 403 for what CheckRequest refuses, 501 where w cannot give the connection away, 500 for
// options that do not pass Validate and for a connection that failed under way.
func Accept(w http.ResponseWriter, r *http.Request, opts *Options) (*Conn, error) {
	hijacker, err := checkAccept(w, r, opts)
	if err != nil {
		http.Error(w, publicText(err), err.Status)
		return nil, err
	}
	c := newConn(opts.withDefaults(), false)
	// The library takes the subprotocol from here; its own choice would ignore case.
	w.Header().Del("Sec-WebSocket-Protocol")
	if chosen := chooseSubprotocol(r.Header, c.opts.Subprotocols); chosen != "" {
		w.Header().Set("Sec-WebSocket-Protocol", chosen)
	}
	up := &upgrade{ResponseWriter: w, hijacker: hijacker}
	ws, wsErr := websocket.Accept(up, r, &websocket.AcceptOptions{
		InsecureSkipVerify: true, // CheckRequest has done it
		CompressionMode:    compressionMode(c.opts.Compression),
		OnPingReceived:     c.pingReceived,
		OnPongReceived:     c.pongReceived,
	})
	if wsErr != nil {
		return nil, &AcceptError{Status: http.StatusInternalServerError, Err: errors.Unwrap(wsErr)}
	}
	c.start(ws, up.sock)
	return c, nil
}

// checkAccept finds everything that can be wrong before anything is written, save for the headers of the answer.
func checkAccept(w http.ResponseWriter, r *http.Request, opts *Options) (http.Hijacker, *AcceptError) {
	if err := opts.Validate(); err != nil {
		return nil, &AcceptError{http.StatusInternalServerError, err}
	}
	if err := checkHandshake(w.Header(), r); err != nil {
		return nil, err
	}
	if err := CheckRequest(r, opts); err != nil {
		return nil, err.(*AcceptError)
	}
	for rw := w; ; {
		switch inner := rw.(type) {
		case http.Hijacker:
			return inner, nil
		case interface{ Unwrap() http.ResponseWriter }:
			rw = inner.Unwrap()
		default:
			return nil, &AcceptError{http.StatusNotImplemented,
				fmt.Errorf("the ResponseWriter (%T) is no http.Hijacker: a middleware hides it", rw)}
		}
	}
}

// checkHandshake holds the request against RFC 6455 section 4.2.1, and adds to the answer what tells how to do better.
func checkHandshake(answer http.Header, r *http.Request) *AcceptError {
	fault := func(status int, format string, args ...any) *AcceptError {
		return &AcceptError{status, fmt.Errorf(format, args...)}
	}
	if r.ProtoMajor != 1 || r.ProtoMinor < 1 {
		return fault(http.StatusHTTPVersionNotSupported, "a WebSocket handshake is HTTP/1.1, not %s", r.Proto)
	}
	if r.Method != http.MethodGet {
		answer.Set("Allow", http.MethodGet)
		return fault(http.StatusMethodNotAllowed, "a WebSocket handshake is a GET, not %q", r.Method)
	}
	if !hasToken(r.Header, "Connection", "upgrade") || !hasToken(r.Header, "Upgrade", "websocket") {
		answer.Set("Connection", "Upgrade")
		answer.Set("Upgrade", "websocket")
		return fault(http.StatusUpgradeRequired, "no WebSocket handshake: Connection %q, Upgrade %q",
			r.Header.Get("Connection"), r.Header.Get("Upgrade"))
	}
	if version := r.Header.Get("Sec-WebSocket-Version"); version != "13" {
		answer.Set("Sec-WebSocket-Version", "13")
		return fault(http.StatusUpgradeRequired, "Sec-WebSocket-Version %q is not 13", version)
	}
	keys := r.Header.Values("Sec-WebSocket-Key")
	if len(keys) != 1 {
		return fault(http.StatusBadRequest, "%d Sec-WebSocket-Key headers", len(keys))
	}
	if raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(keys[0])); err != nil || len(raw) != 16 {
		return fault(http.StatusBadRequest, "Sec-WebSocket-Key %q is not 16 bytes in base64", keys[0])
	}
	return nil
}

// publicText is what the other end is told: the faults of its own request, not how this end is set up.
func publicText(err *AcceptError) string {
	switch err.Status {
	case http.StatusForbidden:
		return "this origin or host may not connect"
	case http.StatusInternalServerError, http.StatusNotImplemented:
		return http.StatusText(err.Status)
	}
	return err.Err.Error()
}

// chooseSubprotocol returns the first of ours that the other end offers, or "".
func chooseSubprotocol(request http.Header, ours []string) string {
	offered := tokens(request, "Sec-WebSocket-Protocol")
	for _, name := range ours {
		if slices.Contains(offered, name) {
			return name
		}
	}
	return ""
}

// hasToken reports whether any comma separated value under key names token, case ignored.
func hasToken(h http.Header, key, token string) bool {
	return slices.ContainsFunc(tokens(h, key), func(t string) bool { return strings.EqualFold(t, token) })
}

// tokens splits the lists in all headers named key.
func tokens(h http.Header, key string) []string {
	var all []string
	for _, line := range h.Values(key) {
		for item := range strings.SplitSeq(line, ",") {
			all = append(all, strings.TrimSpace(item))
		}
	}
	return all
}

// compressionMode picks the library's mode without context takeover, the only one Options.Compression asks for.
func compressionMode(on bool) websocket.CompressionMode {
	if on {
		return websocket.CompressionNoContextTakeover
	}
	return websocket.CompressionDisabled
}

// An upgrade puts a socket between the library and the connection it takes over.
type upgrade struct {
	http.ResponseWriter
	hijacker http.Hijacker
	sock     *socket
}

func (u *upgrade) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := u.hijacker.Hijack()
	if err != nil {
		return nil, nil, err
	}
	early, _ := rw.Reader.Peek(rw.Reader.Buffered())
	u.sock = newSocket(conn, conn, early, 0)
	through := netSocket{conn, u.sock}
	// The library resets the Reader by itself. What it still writes and reads is small.
	return through, bufio.NewReadWriter(bufio.NewReaderSize(through, libraryBuffer), bufio.NewWriterSize(through, libraryBuffer)), nil
}

// libraryBuffer has room for a control frame (RFC 6455 section 5.5), which must leave by one Write.
const libraryBuffer = 256

// WriteHeaderNow is how gin, which puts a status off, is told not to.
func (u *upgrade) WriteHeaderNow() {
	if late, ok := u.ResponseWriter.(interface{ WriteHeaderNow() }); ok {
		late.WriteHeaderNow()
	}
}
