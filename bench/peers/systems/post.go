package systems

import (
	"bytes"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/duetrpc/duet/bench/load"
)

// Post is net/http alone: a JSON text posted, a JSON text answered, connections kept
// alive, one for each call in flight. The codec is encoding/json/v2, since we choose it.
func Post() load.System {
	return load.System{
		Name:  PostName,
		Kinds: []load.Kind{load.Typed, load.Raw},
		Open: func(_ context.Context, s load.Setup) (load.Pair, error) {
			mux := http.NewServeMux()
			mux.HandleFunc("POST /"+echoMethod, func(w http.ResponseWriter, r *http.Request) {
				var d load.Doc
				if err := json.UnmarshalRead(r.Body, &d); err != nil {
					http.Error(w, err.Error(), http.StatusBadRequest)
					return
				}
				text, err := json.Marshal(&d)
				if err != nil {
					http.Error(w, err.Error(), http.StatusInternalServerError)
					return
				}
				answerJSON(w, text)
			})
			mux.HandleFunc("POST /"+rawMethod, func(w http.ResponseWriter, r *http.Request) {
				text, err := io.ReadAll(r.Body)
				if err != nil {
					http.Error(w, err.Error(), http.StatusBadRequest)
					return
				}
				answerJSON(w, text)
			})
			address, stop, err := serve(s.Wire, mux)
			if err != nil {
				return nil, err
			}
			t := transport(s.Wire)
			t.MaxIdleConnsPerHost = maxSlots
			return &postPair{&http.Client{Transport: t}, "http://" + address + "/", stop}, nil
		},
	}
}

// answerJSON tells the length, so that a large text is not cut into chunks.
func answerJSON(w http.ResponseWriter, text []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = w.Write(text) // fails where the client has gone
}

type postPair struct {
	client *http.Client
	url    string
	stop   func()
}

func (p *postPair) Call(ctx context.Context, in, out *load.Doc) error {
	text, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return p.post(ctx, echoMethod, text, func(r io.Reader) error { return json.UnmarshalRead(r, out) })
}

func (p *postPair) CallRaw(ctx context.Context, in stdjson.RawMessage, out *stdjson.RawMessage) error {
	return p.post(ctx, rawMethod, in, func(r io.Reader) (err error) {
		*out, err = appendAll((*out)[:0], r)
		return err
	})
}

func (p *postPair) post(ctx context.Context, method string, text []byte, read func(io.Reader) error) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+method, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("systems: post: %s", resp.Status)
	}
	if err := read(resp.Body); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body) // to the end, so that the connection is used again
	return err
}

func (p *postPair) Notify(context.Context, *load.Doc) error {
	return errors.New("systems: HTTP answers every request")
}

func (p *postPair) Handled() uint64 { return 0 }

func (p *postPair) Close() error {
	p.client.CloseIdleConnections()
	p.stop()
	return nil
}
