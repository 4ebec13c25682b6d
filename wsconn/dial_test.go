package wsconn_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/wsconn"
)

func TestDialBadURL(t *testing.T) {
	for _, test := range []struct {
		name, url, says string
	}{
		{"empty", "", "scheme"},
		{"no scheme", "example.com/", "scheme"},
		{"other scheme", "ftp://user:hunter2@example.com/?token=hunter2", "scheme"},
		{"no host", "ws:///hunter2-is-not-here?token=hunter2", "no host"},
		{"only a port", "ws://:80/", "no host"},
		{"opaque", "ws:user:hunter2@example.com", "no scheme followed by ://"},
		{"fragment", "ws://example.com/#hunter2", "fragment"},
		{"garbage", "ws://exa mple.com/?token=hunter2", "bad URL"},
		{"control character", "ws://example.com/\x00", "bad URL"},
		{"bad port", "ws://example.com:port/?token=hunter2", "port"},
		{"slash in the password", "ws://user:hun/hunter2@example.com/", "bad URL"},
		{"bad userinfo", "ws://user:hunter2 @example.com/", "bad URL"},
		{"no scheme, userinfo", "user:hunter2@example.com", "bad URL"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, resp, err := wsconn.Dial(context.Background(), test.url, nil)
			var got *wsconn.DialError
			if c != nil || resp != nil || !errors.As(err, &got) || got.Status != 0 || !strings.Contains(err.Error(), test.says) {
				t.Fatalf("Dial = %v, %v, %v, want a *DialError saying %q", c, resp, err, test.says)
			}
			if text := strings.Replace(err.Error(), "hunter2-is-not-here", "", 1); strings.Contains(text, "hun") {
				t.Errorf("Dial = %v, which shows a secret", err)
			}
		})
	}
}

func TestDialFails(t *testing.T) {
	refused := errors.New("refused")
	for _, test := range []struct {
		name   string
		answer func(r *http.Request) (*http.Response, error)
		status int
		is     error
		says   string
	}{
		{"no answer", func(*http.Request) (*http.Response, error) { return nil, refused }, 0, refused, "refused"},
		{"404", func(*http.Request) (*http.Response, error) { return answer(404, "no such page"), nil }, 404, nil, "404"},
		{"200", func(*http.Request) (*http.Response, error) { return answer(200, "hello"), nil }, 200, nil, "200"},
		{"101 without headers", func(*http.Request) (*http.Response, error) { return answer(101, ""), nil }, 101, nil, "Connection"},
	} {
		t.Run(test.name, func(t *testing.T) {
			body := &closeCounter{}
			tripper := tripFunc(func(r *http.Request) (*http.Response, error) {
				resp, err := test.answer(r)
				if resp != nil {
					body.Reader, resp.Body = resp.Body, body
				}
				return resp, err
			})
			url := "wss://user:hunter2@example.com/path?token=hunter2"
			_, resp, err := wsconn.Dial(context.Background(), url, &wsconn.Options{HTTPClient: &http.Client{Transport: tripper}})
			var got *wsconn.DialError
			if !errors.As(err, &got) || got.Status != test.status || got.URL != "wss://example.com/path" ||
				!strings.Contains(err.Error(), test.says) || test.is != nil && !errors.Is(err, test.is) {
				t.Fatalf("Dial = %v, want a *DialError with status %d saying %q", err, test.status, test.says)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("Dial = %v, which shows a secret", err)
			}
			if resp == nil {
				return
			}
			if text, err := io.ReadAll(resp.Body); err != nil || test.status == 404 && string(text) != "no such page" {
				t.Errorf("body = %q, %v, want what was answered", text, err)
			}
			if body.closed == 0 {
				t.Error("the body that was answered is not closed")
			}
		})
	}
}

// A handshake that is redirected in a circle, as by the page of a network that wants a
// login, comes to an end.
func TestDialRedirects(t *testing.T) {
	n := 0
	tripper := tripFunc(func(r *http.Request) (*http.Response, error) {
		n++
		resp := answer(302, "")
		resp.Header = http.Header{"Location": {"/login"}}
		resp.Request = r
		return resp, nil
	})
	_, _, err := wsconn.Dial(t.Context(), "ws://example.com/", &wsconn.Options{HTTPClient: &http.Client{Transport: tripper}})
	if err == nil || n != 10 || !strings.Contains(err.Error(), "10 redirects") {
		t.Errorf("after %d requests: %v", n, err)
	}
}

func TestDialForeignSubprotocol(t *testing.T) {
	for _, test := range []struct {
		name   string
		offers []string
		chosen string
	}{{"none offered", nil, "a"}, {"another", []string{"a"}, "b"}, {"case differs", []string{"a"}, "A"}} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, raw, err := dialRaw(t, &wsconn.Options{Subprotocols: test.offers}, "Sec-WebSocket-Protocol", test.chosen)
				var got *wsconn.DialError
				if c != nil || !errors.As(err, &got) || !strings.Contains(err.Error(), `"`+test.chosen+`"`) {
					t.Errorf("Dial = %v, %v, want a *DialError naming %q", c, err, test.chosen)
				}
				if _, err := raw.Read(make([]byte, 1)); err != io.EOF {
					t.Errorf("stream = %v, want io.EOF: it is closed", err)
				}
			})
		})
	}
}

func TestDialContext(t *testing.T) {
	for _, test := range []struct {
		name   string
		answer func(r *http.Request) (*http.Response, error)
	}{
		{"no answer", func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, context.Cause(r.Context())
		}},
		// The answer switches protocols wrongly, and its stream says nothing: net/http no longer watches it.
		{"silent stream", func(r *http.Request) (*http.Response, error) {
			resp, err := pipeTripper{func(w http.ResponseWriter, _ *http.Request) { w.(http.Hijacker).Hijack() }}.RoundTrip(r)
			return resp, err
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				start := time.Now()
				_, _, err := wsconn.Dial(ctx, "ws://duet.test/", &wsconn.Options{HTTPClient: &http.Client{Transport: tripFunc(test.answer)}})
				if got := new(wsconn.DialError); !errors.As(err, &got) || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
					t.Errorf("Dial = %v after %v, want a *DialError with DeadlineExceeded after 1s", err, time.Since(start))
				}
			})
		})
	}
}

// The context, and the HTTP client's timeout, are over with the handshake.
func TestDialContextEndsAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var accepted *wsconn.Conn
		opts := through(func(w http.ResponseWriter, r *http.Request) { accepted, _ = wsconn.Accept(w, r, nil) }, nil)
		opts.HTTPClient.Timeout = time.Second
		c, resp, err := wsconn.Dial(ctx, "http://duet.test/", opts)
		if err != nil || resp.StatusCode != 101 || resp.Body != nil {
			t.Fatalf("Dial = %v, %v, want a 101 without a body", resp, err)
		}
		cancel()
		time.Sleep(time.Minute / 6)
		far := readAll(accepted)
		if err := c.Write(context.Background(), []byte("x")); err != nil {
			t.Errorf("Write = %v, want nil", err)
		}
		readAll(c)
		c.Close(nil)
		<-far
		<-c.Done()
		<-accepted.Done()
	})
}

func TestDialRequest(t *testing.T) {
	var seen *http.Request
	opts := through(func(w http.ResponseWriter, r *http.Request) { seen = r; w.WriteHeader(404) }, &wsconn.Options{
		Header: http.Header{"Authorization": {"Bearer x"}}, Host: "other.test", Subprotocols: []string{"b", "a"}, Compression: true,
	})
	wsconn.Dial(context.Background(), "ws://duet.test/p?q=1", opts)
	for _, test := range []struct{ name, got, want string }{
		{"url", seen.URL.String(), "http://duet.test/p?q=1"},
		{"host", seen.Host, "other.test"},
		{"authorization", seen.Header.Get("Authorization"), "Bearer x"},
		{"subprotocols", seen.Header.Get("Sec-WebSocket-Protocol"), "b,a"},
		{"compression", seen.Header.Get("Sec-WebSocket-Extensions"), "permessage-deflate; client_no_context_takeover; server_no_context_takeover"},
	} {
		if test.got != test.want {
			t.Errorf("%s = %q, want %q", test.name, test.got, test.want)
		}
	}
	if len(opts.Header) != 1 {
		t.Errorf("Options.Header = %v after Dial, want it untouched", opts.Header)
	}
}

type tripFunc func(r *http.Request) (*http.Response, error)

func (f tripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
}

// closeCounter is a body that counts its Close calls.
type closeCounter struct {
	io.Reader
	closed int
}

func (c *closeCounter) Close() error { c.closed++; return nil }
