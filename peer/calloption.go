package peer

import "context"

// CallOption is a choice for one call.
type CallOption func(*callOptions)

type callOptions struct {
	note       string
	idempotent bool
	cancel     context.Context // nil where there is none
	progress   func(Progress)
	extensions []func(*Extension) error
	once       *bool // for Extension.OnEnd
}

// extends reports whether the call is more than its method and params.
func (o *callOptions) extends() bool { return o.progress != nil || len(o.extensions) > 0 }

// Note adds text of the caller's own to what is logged and reported about the
// call. It does not leave this end.
func Note(text string) CallOption { return func(o *callOptions) { o.note = text } }

// Idempotent says that the other end may run the call twice. A [Client] then makes it
// again on its next connection also where it may have been sent over the one that has
// ended; progress begins anew with it. A stream is made again only while no
// item has come. A Conn makes no call twice.
func Idempotent() CallOption { return func(o *callOptions) { o.idempotent = true } }

// chosen returns what opts say.
func chosen(opts []CallOption) callOptions {
	if len(opts) == 0 {
		return callOptions{}
	}
	var choice callOptions // on the heap, since options are anybody's
	for _, opt := range opts {
		if opt != nil {
			opt(&choice)
		}
	}
	return choice
}

// CancelBy has the end of ctx give the call up, and the call still wait for its answer:
// the error that the other end gives then, or what it had ready, as LSP and ACP have it.
// The context of Call itself ends the waiting. Where the profile has no cancels, or
// wants no answer after one, bound that.
func CancelBy(ctx context.Context) CallOption { return func(o *callOptions) { o.cancel = ctx } }
