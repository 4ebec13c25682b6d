package wsconn_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/duetrpc/duet/wsconn"
)

func TestOptionsValidate(t *testing.T) {
	if err := (*wsconn.Options)(nil).Validate(); err != nil {
		t.Errorf("Validate of nil = %v, want nil", err)
	}
	for _, test := range []struct {
		name  string
		opts  wsconn.Options
		field string // of the error; "" for none
	}{
		{"zero", wsconn.Options{}, ""},
		{"full", wsconn.Options{
			ReadLimit: 1, PingInterval: -1, PongTimeout: time.Second, WriteTimeout: -1,
			Subprotocols:   []string{"duet.v1", "DUET.v1"},
			OriginPatterns: []string{"*.example.com", "https://example.com:8443", "[ab].example.com"},
			Hosts:          []string{"example.com", "*.local", "127.0.0.1", "[::1]", "::1"},
		}, ""},
		{"negative limit", wsconn.Options{ReadLimit: -1}, "ReadLimit"},
		{"negative pong timeout", wsconn.Options{PongTimeout: -1}, "PongTimeout"},
		{"empty subprotocol", wsconn.Options{Subprotocols: []string{""}}, "Subprotocols[0]"},
		{"subprotocol list in one", wsconn.Options{Subprotocols: []string{"a", "b, c"}}, "Subprotocols[1]"},
		{"subprotocol not ASCII", wsconn.Options{Subprotocols: []string{"dué"}}, "Subprotocols[0]"},
		{"subprotocol twice", wsconn.Options{Subprotocols: []string{"a", "a"}}, "Subprotocols[1]"},
		{"bad origin pattern", wsconn.Options{OriginPatterns: []string{"ok", "[a"}}, "OriginPatterns[1]"},
		{"bad origin pattern behind a scheme", wsconn.Options{OriginPatterns: []string{`https://a\`}}, "OriginPatterns[0]"},
		{"empty origin pattern", wsconn.Options{OriginPatterns: []string{""}}, "OriginPatterns[0]"},
		{"origin pattern without a host", wsconn.Options{OriginPatterns: []string{"https://"}}, "OriginPatterns[0]"},
		{"origin pattern with a path", wsconn.Options{OriginPatterns: []string{"https://a.com/"}}, "OriginPatterns[0]"},
		{"bad host pattern", wsconn.Options{Hosts: []string{"[a"}}, "Hosts[0]"},
		{"empty host", wsconn.Options{Hosts: []string{""}}, "Hosts[0]"},
		{"host with a port", wsconn.Options{Hosts: []string{"example.com:80"}}, "Hosts[0]"},
		{"host with a scheme", wsconn.Options{Hosts: []string{"https://example.com"}}, "Hosts[0]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.opts.Validate()
			var got *wsconn.OptionError
			if errors.As(err, &got); test.field == "" && err != nil || test.field != "" && (got == nil || got.Field != test.field) {
				t.Fatalf("Validate = %v, want field %q", err, test.field)
			}
			if test.field == "" {
				return
			}
			if _, _, err := wsconn.Dial(context.Background(), "ws://duet.test/", &test.opts); !errors.As(err, &got) {
				t.Errorf("Dial = %v, want an *OptionError", err)
			}
			w := httptest.NewRecorder()
			if _, err := wsconn.Accept(w, handshake(), &test.opts); !errors.As(err, &got) || w.Code != 500 {
				t.Errorf("Accept = %v with status %d, want an *OptionError with 500", err, w.Code)
			}
		})
	}
}
