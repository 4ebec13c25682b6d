package wsconn_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/duetrpc/duet/wsconn"
)

func TestAcceptRefuses(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(r *http.Request)
		status int
		header string // of the answer, with a value
	}{
		{"post", func(r *http.Request) { r.Method = "POST" }, 405, "Allow"},
		{"plain get", func(r *http.Request) { r.Header = http.Header{} }, 426, "Upgrade"},
		{"no upgrade", func(r *http.Request) { r.Header.Del("Upgrade") }, 426, "Upgrade"},
		{"other upgrade", func(r *http.Request) { r.Header.Set("Upgrade", "h2c") }, 426, "Upgrade"},
		{"connection close", func(r *http.Request) { r.Header.Set("Connection", "close") }, 426, "Connection"},
		{"version 8", func(r *http.Request) { r.Header.Set("Sec-WebSocket-Version", "8") }, 426, "Sec-WebSocket-Version"},
		{"no key", func(r *http.Request) { r.Header.Del("Sec-WebSocket-Key") }, 400, ""},
		{"two keys", func(r *http.Request) { r.Header.Add("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==") }, 400, ""},
		{"short key", func(r *http.Request) { r.Header.Set("Sec-WebSocket-Key", "AAAA") }, 400, ""},
		{"key not base64", func(r *http.Request) { r.Header.Set("Sec-WebSocket-Key", "?") }, 400, ""},
		{"HTTP/1.0", func(r *http.Request) { r.ProtoMinor = 0 }, 505, ""},
		{"HTTP/2", func(r *http.Request) { r.ProtoMajor, r.ProtoMinor = 2, 0 }, 505, ""},
		{"foreign origin", func(r *http.Request) { r.Header.Set("Origin", "https://evil.test") }, 403, ""},
		{"nothing to hijack", func(r *http.Request) {}, 501, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, w := handshake(), httptest.NewRecorder()
			test.change(r)
			c, err := wsconn.Accept(w, r, nil)
			var got *wsconn.AcceptError
			if c != nil || !errors.As(err, &got) || got.Status != test.status || w.Code != test.status {
				t.Errorf("Accept = %v, %v with status %d, want an *AcceptError with %d", c, err, w.Code, test.status)
			}
			if test.header != "" && w.Header().Get(test.header) == "" {
				t.Errorf("answer has no %s header", test.header)
			}
			if strings.Contains(w.Body.String(), "Options") {
				t.Errorf("answer = %q, which tells the other end how this one is set up", w.Body)
			}
		})
	}
}

// goneWriter is a ResponseWriter whose connection is gone.
type goneWriter struct{ *httptest.ResponseRecorder }

func (goneWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, errGone }

var errGone = errors.New("gone")

func TestAcceptHijackFails(t *testing.T) {
	w := goneWriter{httptest.NewRecorder()}
	_, err := wsconn.Accept(w, handshake(), nil)
	if got := new(wsconn.AcceptError); !errors.As(err, &got) || got.Status != 500 || !errors.Is(err, errGone) {
		t.Errorf("Accept = %v, want an *AcceptError with 500 and the cause", err)
	}
}

// wrapped is a middleware's ResponseWriter.
type wrapped struct{ http.ResponseWriter }

func (w wrapped) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func TestAcceptThroughMiddleware(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pairBy(t, nil, func(w http.ResponseWriter, r *http.Request) (*wsconn.Conn, error) {
			w.Header().Set("Sec-WebSocket-Protocol", "not.chosen.by.Accept")
			return wsconn.Accept(wrapped{wrapped{w}}, r, nil)
		})
		readAll(b)
		readAll(a)
		a.Close(nil)
		<-a.Done()
		<-b.Done()
	})
}

func TestSubprotocol(t *testing.T) {
	for _, test := range []struct {
		name          string
		offers, takes []string
		want          string
	}{
		{"neither", nil, nil, ""},
		{"only offered", []string{"a"}, nil, ""},
		{"only taken", nil, []string{"a"}, ""},
		{"none in common", []string{"a"}, []string{"b"}, ""},
		{"accepting end prefers", []string{"a", "b"}, []string{"b", "a"}, "b"},
		{"case differs", []string{"Duet"}, []string{"duet"}, ""},
		{"exact one behind", []string{"Duet", "duet"}, []string{"duet"}, "duet"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := pair(t, &wsconn.Options{Subprotocols: test.offers}, &wsconn.Options{Subprotocols: test.takes})
				if a.Subprotocol() != test.want || b.Subprotocol() != test.want {
					t.Errorf("Subprotocol() = %q dialed, %q accepted, want %q", a.Subprotocol(), b.Subprotocol(), test.want)
				}
				readAll(a)
				readAll(b)
				a.Close(nil)
				<-a.Done()
				<-b.Done()
			})
		})
	}
}

func TestCheckRequest(t *testing.T) {
	loopback := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}
	loopback6 := &net.TCPAddr{IP: net.IPv6loopback, Port: 80}
	public := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}
	any := &wsconn.Options{InsecureAnyOrigin: true}
	origins := func(p ...string) *wsconn.Options { return &wsconn.Options{OriginPatterns: p} }
	hosts := func(p ...string) *wsconn.Options { return &wsconn.Options{Hosts: p} }
	for _, test := range []struct {
		name   string
		addr   net.Addr
		host   string
		origin string // "" for none
		opts   *wsconn.Options
		option string // that the refusal names; "" where it passes
	}{
		{"no origin", public, "example.com", "", nil, ""},
		{"same origin", public, "example.com", "https://example.com", nil, ""},
		{"same origin, other case", public, "Example.com:8080", "http://example.COM:8080", nil, ""},
		{"other origin", public, "example.com", "https://evil.com", nil, "OriginPatterns"},
		{"other port", public, "example.com:8080", "http://example.com:9090", nil, "OriginPatterns"},
		{"suffix of the host", public, "example.com", "https://notexample.com", nil, "OriginPatterns"},
		{"userinfo in the origin", public, "example.com", "https://example.com@evil.com", nil, "OriginPatterns"},
		{"null origin", public, "example.com", "null", nil, "InsecureAnyOrigin"},
		{"null origin and a star", public, "example.com", "null", origins("*"), "InsecureAnyOrigin"},
		{"garbage origin", public, "example.com", "http://[", nil, "InsecureAnyOrigin"},
		{"null origin, any", public, "example.com", "null", any, ""},
		{"other origin, any", public, "example.com", "https://evil.com", any, ""},
		{"pattern", public, "api.com", "https://app.example.com", origins("*.example.com"), ""},
		{"pattern, other case", public, "api.com", "https://APP.example.com", origins("*.Example.com"), ""},
		{"pattern does not fit", public, "api.com", "https://example.com", origins("*.example.com"), "OriginPatterns"},
		{"pattern with scheme", public, "api.com", "https://example.com", origins("https://example.com"), ""},
		{"pattern with other scheme", public, "api.com", "http://example.com", origins("https://example.com"), "OriginPatterns"},
		{"second pattern", public, "api.com", "http://b.com", origins("a.com", "b.com"), ""},

		{"any host", public, "whatever.com", "", nil, ""},
		{"no listener known", nil, "whatever.com", "", nil, ""},
		{"rebinding", loopback, "evil.com", "http://evil.com", nil, "Hosts"},
		{"rebinding with port", loopback, "evil.com:8080", "http://evil.com:8080", nil, "Hosts"},
		{"rebinding, any origin", loopback, "evil.com", "http://evil.com", any, "Hosts"},
		{"rebinding on IPv6", loopback6, "evil.com", "", nil, "Hosts"},
		{"looks like localhost", loopback, "localhost.evil.com", "", nil, "Hosts"},
		{"looks like loopback", loopback, "127.0.0.1.evil.com", "", nil, "Hosts"},
		{"no host", loopback, "", "", nil, "Hosts"},
		{"public address on loopback", loopback, "192.0.2.1", "", nil, "Hosts"},
		{"localhost", loopback, "localhost:8080", "http://localhost:8080", nil, ""},
		{"localhost, other case and dot", loopback, "LocalHost.", "", nil, ""},
		{"below localhost", loopback, "app.localhost:1", "", nil, ""},
		{"127.0.0.1", loopback, "127.0.0.1:8080", "", nil, ""},
		{"127.1.2.3", loopback, "127.1.2.3", "", nil, ""},
		{"::1", loopback6, "[::1]:8080", "", nil, ""},
		{"::1 without port", loopback6, "[::1]", "", nil, ""},
		{"hosts", public, "example.com:443", "", hosts("example.com"), ""},
		{"hosts, other", public, "evil.com", "", hosts("example.com"), "Hosts"},
		{"hosts replace loopback", loopback, "localhost", "", hosts("example.com"), "Hosts"},
		{"hosts on loopback", loopback, "example.com", "", hosts("example.com"), ""},
		{"hosts pattern", public, "a.example.com", "", hosts("*.example.com"), ""},
		{"hosts with an address", public, "[::1]:1", "", hosts("[::1]"), ""},
		{"hosts with an address, no set", public, "1", "", hosts("[::1]"), "Hosts"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := handshake()
			r.Host = test.host
			if test.origin != "" {
				r.Header.Set("Origin", test.origin)
			}
			if test.addr != nil {
				r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, test.addr))
			}
			err := wsconn.CheckRequest(r, test.opts)
			if test.option == "" {
				if err != nil {
					t.Errorf("CheckRequest = %v, want nil", err)
				}
				return
			}
			var got *wsconn.AcceptError
			if !errors.As(err, &got) || got.Status != 403 || !strings.Contains(err.Error(), "Options."+test.option) {
				t.Errorf("CheckRequest = %v, want an *AcceptError with 403 naming Options.%s", err, test.option)
			}
			w := httptest.NewRecorder()
			if _, err := wsconn.Accept(w, r, test.opts); !errors.As(err, &got) || w.Code != 403 {
				t.Errorf("Accept = %v with status %d, want 403", err, w.Code)
			}
		})
	}

	t.Run("two origins", func(t *testing.T) {
		r := handshake()
		r.Header["Origin"] = []string{"http://duet.test", "http://evil.com"}
		if err := wsconn.CheckRequest(r, nil); err == nil {
			t.Error("CheckRequest = nil, want an error")
		}
	})

	t.Run("bad pattern", func(t *testing.T) {
		var global bytes.Buffer
		log.SetOutput(&global)
		defer log.SetOutput(os.Stderr)
		r := handshake()
		r.Header.Set("Origin", "http://evil.com")
		var got *wsconn.OptionError
		if err := wsconn.CheckRequest(r, origins("[")); !errors.As(err, &got) {
			t.Errorf("CheckRequest = %v, want an *OptionError", err)
		}
		if _, err := wsconn.Accept(httptest.NewRecorder(), r, origins("[")); !errors.As(err, &got) || global.Len() > 0 {
			t.Errorf("Accept = %v with %q in the global log, want an *OptionError and nothing", err, &global)
		}
	})
}
