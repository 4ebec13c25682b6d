package peer

import (
	"fmt"
	"time"
)

// ClientPhase says what a [ClientState] is about.
type ClientPhase uint8

// The phases of a Client.
const (
	Dialling     ClientPhase = iota // an attempt begins
	DialFailed                      // it failed, or what came after it did: Session or OnConnect
	Connected                       // a connection is ready: OnConnect has returned
	Disconnected                    // it has ended
	Interrupted                     // a session has lost its socket; its connection lives on
	Resumed                         // and goes on over another one
	Ended                           // nothing follows
	clientPhases
)

var phaseNames = [clientPhases]string{
	"dialling", "dial failed", "connected", "disconnected", "interrupted", "resumed", "ended",
}

// String returns the name of the phase in words.
func (p ClientPhase) String() string {
	if p < clientPhases {
		return phaseNames[p]
	}
	return "unknown phase"
}

// ClientState is how a Client fares.
type ClientState struct {
	Phase   ClientPhase
	Attempt int           // Dialling, DialFailed: which one since the Client was connected, from 1
	Wait    time.Duration // DialFailed, Disconnected, Interrupted: the pause until the next attempt; 0 where none follows
	Err     error         // of these, what went wrong; Ended: what GiveUp accepted, or nil
}

// String returns the state as one line of text.
func (s ClientState) String() string {
	text := s.Phase.String()
	if s.Attempt > 0 {
		text += fmt.Sprintf(", attempt %d", s.Attempt)
	}
	if s.Wait > 0 {
		text += fmt.Sprintf(", next in %v", s.Wait)
	}
	if s.Err != nil {
		text += ": " + s.Err.Error()
	}
	return text
}
