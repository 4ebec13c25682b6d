package profile_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/profile"
)

var update = flag.Bool("update", false, "write the tables of docs/profiles.md anew")

// The tables of docs/profiles.md are made of the profiles, so that they cannot differ.
func TestTables(t *testing.T) {
	const page, begin, end = "../docs/profiles.md", "<!-- tables: go test ./profile -update -->\n", "<!-- end of tables -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), begin)
	old, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		t.Fatalf("%s lacks a line %q or, after it, %q", page, begin, end)
	}
	made := markdown()
	switch {
	case old == made:
	case *update:
		if err := os.WriteFile(page, []byte(before+begin+made+end+after), 0o666); err != nil {
			t.Error(err)
		}
	default:
		t.Errorf("%s does not show the profiles as they are:\n%s\nTo write its tables anew: go test ./profile -update", page, difference(old, made))
	}
}

// difference lists the lines that one text has and the other has not.
func difference(old, made string) string {
	var all []string
	has := strings.Split(old, "\n")
	wants := strings.Split(made, "\n")
	for _, line := range has {
		if !slices.Contains(wants, line) {
			all = append(all, "- "+line)
		}
	}
	for _, line := range wants {
		if !slices.Contains(has, line) {
			all = append(all, "+ "+line)
		}
	}
	return strings.Join(all, "\n")
}

type column struct {
	title string
	cell  func(*peer.Profile) string
}

const none = "–"

var tables = []struct {
	title   string
	columns []column
}{
	{"Messages", []column{
		{"id", idCell},
		{"params", func(p *peer.Profile) string {
			kinds := choose(p.Rules.ObjectParams, "object", "array, object")
			return kinds + choose(p.Rules.NullParams, "; null is absent", "")
		}},
		{"result", func(p *peer.Profile) string { return choose(p.Rules.ObjectResult, "object", "any") }},
		{"`jsonrpc`", func(p *peer.Profile) string { return choose(p.Rules.NoVersion, "left out, may be there", "`\"2.0\"`") }},
		{"an array of messages", func(p *peer.Profile) string {
			switch {
			case p.Rules.NoBatch:
				return "one -32600, id null"
			case len(p.Rules.NotInBatch) > 0:
				return "is served, without " + code(p.Rules.NotInBatch...)
			}
			return "is served"
		}},
		{"a notification runs", func(p *peer.Profile) string {
			return choose(p.NamedNotifications, "only if registered as one", "the handler of the call, too")
		}},
	}},
	{"Giving up a call", []column{
		{"cancel message", func(p *peer.Profile) string {
			if p.Cancel.Off {
				return none
			}
			members := cmp.Or(p.Cancel.Field, "id")
			if p.Cancel.Reason != "" {
				members += ", " + p.Cancel.Reason
			}
			return fmt.Sprintf("`%s` `{%s}`", cmp.Or(p.Cancel.Method, "$/cancelRequest"), members)
		}},
		{"a cancelled call is answered", func(p *peer.Profile) string {
			switch {
			case p.Cancel.Off:
				return none
			case p.Cancel.Silent:
				return "no"
			}
			return "with " + numbers(cmp.Or(p.Cancelled, peer.Cancelled)) + ", or its result"
		}},
		{"cannot be cancelled", func(p *peer.Profile) string {
			return choose(p.Cancel.Off, "every call", code(p.Cancel.Exempt...))
		}},
	}},
	{"Progress, and items of a stream", []column{
		{"progress message", progressCell},
		{"is asked for in", places(func(progress, _ []string) []string { return progress })},
		{"an item is", func(p *peer.Profile) string {
			switch {
			case p.Progress.Off:
				return none
			case p.Progress.Flat:
				return "in its `_meta`"
			}
			return "its `value`"
		}},
		{"items are asked for in", places(func(_, items []string) []string { return items })},
	}},
	{"The session", []column{
		{"opens with", func(p *peer.Profile) string { return code(p.Opening.Call) }},
		{"calls before that get", func(p *peer.Profile) string {
			if p.Opening.Call == "" {
				return none
			}
			return numbers(cmp.Or(p.Opening.Code, peer.InvalidRequest))
		}},
		{"taken all the same", func(p *peer.Profile) string {
			var taken []string
			if len(p.Opening.Calls) > 0 {
				taken = append(taken, "call "+code(p.Opening.Calls...))
			}
			if len(p.Opening.Notices) > 0 {
				taken = append(taken, "notification "+code(p.Opening.Notices...))
			}
			return cmp.Or(strings.Join(taken, ", "), none)
		}},
		{"closes with", func(p *peer.Profile) string {
			return code(p.Opening.Close) + choose(p.Opening.Close != "", "; calls after it get "+numbers(peer.InvalidRequest), "")
		}},
	}},
	{"Who calls, and with what", []column{
		{"who calls", func(p *peer.Profile) string { return choose(p.OneWay, "the end that dialled", "both ends") }},
		{"calls of the other get", func(p *peer.Profile) string {
			if !p.OneWay {
				return none
			}
			return numbers(cmp.Or(p.OneWayCode, peer.InvalidRequest))
		}},
		{"`_meta` must have, or -32602", func(p *peer.Profile) string { return code(p.RequiredMeta...) }},
	}},
	{"Error codes", []column{
		{"cancelled", func(p *peer.Profile) string { return numbers(cmp.Or(p.Cancelled, peer.Cancelled)) }},
		{"overloaded", func(p *peer.Profile) string { return numbers(cmp.Or(p.Overloaded, peer.Overloaded)) }},
		{"shutting down", func(p *peer.Profile) string { return numbers(cmp.Or(p.ShuttingDown, peer.ShuttingDown)) }},
		{"for applications", func(p *peer.Profile) string { return numbers(p.Codes...) }},
	}},
}

func idCell(p *peer.Profile) string {
	kinds := "string, " + choose(p.Rules.IntegerID, "integer", "number")
	if p.Rules.IDBits > 0 {
		kinds = fmt.Sprintf("string, %d-bit integer", p.Rules.IDBits)
	}
	return kinds + choose(p.Rules.NoNullID, "", ", null")
}

func progressCell(p *peer.Profile) string {
	d := &p.Progress
	method, token := d.Notification()
	members := "progress, total, message"
	switch {
	case d.Off:
		return none
	case d.WorkDone:
		members = "value: {kind, percentage, message}"
	case !d.Flat:
		members = "value: {progress, total, message}"
	}
	return fmt.Sprintf("`%s` `{%s, %s}`", method, token, members)
}

// places is the cell of where params have one of the tokens.
func places(which func(progress, items []string) []string) func(*peer.Profile) string {
	return func(p *peer.Profile) string {
		if p.Progress.Off {
			return none
		}
		var names []string
		for _, pointer := range which(p.Progress.Places()) {
			names = append(names, strings.ReplaceAll(strings.TrimPrefix(pointer, "/"), "/", "."))
		}
		return code(names...)
	}
}

func choose(condition bool, yes, no string) string {
	if condition {
		return yes
	}
	return no
}

// code writes names in the type of code.
func code(names ...string) string {
	if len(names) == 0 || names[0] == "" {
		return none
	}
	return "`" + strings.Join(names, "`, `") + "`"
}

func numbers(codes ...peer.Code) string {
	var all []string
	for _, c := range codes {
		all = append(all, strconv.Itoa(int(c)))
	}
	return cmp.Or(strings.Join(all, ", "), none)
}

// markdown is all tables, a row for each profile; those that differ in nothing share one.
func markdown() string {
	var text strings.Builder
	for _, table := range tables {
		titles := []string{table.title}
		for _, c := range table.columns {
			titles = append(titles, c.title)
		}
		var rows []string // what follows the names
		of := map[string][]string{}
		for _, name := range profile.Names() {
			p, _ := profile.Named(name)
			row := ""
			for _, c := range table.columns {
				row += " | " + c.cell(p)
			}
			if of[row] == nil {
				rows = append(rows, row)
			}
			of[row] = append(of[row], name)
		}
		fmt.Fprintf(&text, "\n| %s |\n|%s\n", strings.Join(titles, " | "), strings.Repeat(" --- |", len(titles)))
		for _, row := range rows {
			fmt.Fprintf(&text, "| %s%s |\n", strings.Join(of[row], ", "), row)
		}
	}
	return text.String() + "\n"
}
