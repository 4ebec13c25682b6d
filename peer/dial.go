package peer

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/duetrpc/duet/wsconn"
)

// Dial connects to a ws, wss, http or https URL. ctx bounds the handshake only.
// The error is an *OptionError, or a *wsconn.DialError that says what the server
// answered.
func Dial(ctx context.Context, url string, opts *Options) (*Conn, error) {
	p, err := opts.prepare()
	if err != nil {
		return nil, err
	}
	p.Accepts = false
	ws, _, err := wsconn.Dial(ctx, url, &p.WebSocket)
	if err != nil {
		return nil, err
	}
	owned := true
	defer func() {
		if owned { // a function of Options.Outgoing panicked
			_ = ws.Close(wsconn.ErrInternal)
		}
	}()
	c := newConn(ws, p, p.BaseContext, &buffers{}, nil)
	owned = false
	return c, nil
}

// Accept makes a connection of an upgrade request. On an error w has been
// answered; the error is an *OptionError (500), a *wsconn.AcceptError, what
// Options.Authorize or Options.Transport returned, or ErrTaken.
func Accept(w http.ResponseWriter, r *http.Request, opts *Options) (*Conn, error) {
	p, err := opts.prepare()
	if err != nil {
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		return nil, err
	}
	p.Accepts = true
	return accept(w, r, p, &buffers{}, nil)
}

// accept is Accept with prepared options.
func accept(w http.ResponseWriter, r *http.Request, opts *Options, pool *buffers, up *upgrade) (*Conn, error) {
	if err := wsconn.CheckRequest(r, &opts.WebSocket); err != nil {
		return nil, refuseUpgrade(w, opts, r, http.StatusForbidden, err)
	}
	values := r.Context()
	if opts.Authorize != nil {
		ctx, err := opts.Authorize(r)
		switch {
		case errors.Is(err, ErrForbidden):
			return nil, refuseUpgrade(w, opts, r, http.StatusForbidden, err)
		case err != nil:
			// RFC 9110 section 11.6.1 wants a challenge with a 401.
			w.Header().Set("WWW-Authenticate", "Bearer")
			return nil, refuseUpgrade(w, opts, r, http.StatusUnauthorized, err)
		case ctx != nil:
			values = ctx
		}
	}
	if principal := PrincipalFrom(values); !up.onBehalf(principal) {
		opts.Logger.Info("duet: upgrade refused, too many of one principal are under way", slog.String("remote", r.RemoteAddr))
		refuseForNow(w)
		return nil, &LimitError{What: "Connections", Limit: int64(spareEach)}
	}
	ws, err := wsconn.Accept(w, r, &opts.WebSocket)
	if err != nil {
		opts.Logger.Info("duet: upgrade failed", slog.String("remote", r.RemoteAddr), slog.Any("error", err))
		return nil, err
	}
	owned, transport := true, Transport(ws)
	defer func() {
		if owned { // Options.Transport failed, or a function of Options panicked
			_ = transport.Close(wsconn.ErrInternal) // the first cause wins
			<-ws.Done()                             // an upgrade is under way as long as its socket is there
		}
	}()
	if opts.Transport != nil {
		t, err := opts.Transport(r.WithContext(joinedContext{r.Context(), values}), ws)
		switch {
		case err != nil:
			opts.Logger.Warn("duet: Options.Transport failed", slog.String("remote", r.RemoteAddr), slog.Any("error", err))
			_ = ws.Close(err)
			return nil, err
		case t == nil:
			owned = false
			return nil, ErrTaken
		}
		transport = t
	}
	if err := up.admit(); err != nil {
		opts.Logger.Info("duet: connection refused", slog.String("remote", r.RemoteAddr), slog.Any("error", err))
		_ = transport.Close(err)
		return nil, err
	}
	// The request's own context ends with ServeHTTP; its values stay.
	parent := joinedContext{opts.BaseContext, context.WithoutCancel(values)}
	c := newConn(transport, opts, parent, pool, up.done)
	owned = false
	return c, nil
}

// refuseUpgrade answers with status and no details, and logs them.
func refuseUpgrade(w http.ResponseWriter, opts *Options, r *http.Request, status int, err error) error {
	opts.Logger.Info("duet: upgrade refused", slog.Int("status", status),
		slog.String("remote", r.RemoteAddr), slog.Any("error", err))
	http.Error(w, http.StatusText(status), status)
	return err
}
