package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// environment is what figures depend on beside the program.
type environment struct {
	Go         string            `json:"go"`
	OS         string            `json:"os"`
	Kernel     string            `json:"kernel,omitempty"`
	Arch       string            `json:"arch"`
	CPU        string            `json:"cpu,omitempty"`
	Cores      int               `json:"cores"`
	GOMAXPROCS int               `json:"gomaxprocs"`
	Libraries  map[string]string `json:"libraries"` // versions of what is compared
}

// compared are the modules whose versions matter.
var compared = []string{
	"github.com/coder/websocket",
	"github.com/creachadair/jrpc2",
	"github.com/ethereum/go-ethereum",
	"github.com/go-json-experiment/json",
	"github.com/gorilla/websocket",
	"github.com/sourcegraph/jsonrpc2",
	"go.lsp.dev/jsonrpc2",
	"golang.org/x/exp/jsonrpc2",
	"google.golang.org/grpc",
	"google.golang.org/protobuf",
}

func here() environment {
	e := environment{
		Go:         runtime.Version(),
		OS:         runtime.GOOS,
		Kernel:     firstLine("/proc/sys/kernel/osrelease"),
		Arch:       runtime.GOARCH,
		CPU:        processor(),
		Cores:      runtime.NumCPU(),
		GOMAXPROCS: runtime.GOMAXPROCS(0),
		Libraries:  make(map[string]string),
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return e
	}
	for _, name := range compared {
		for _, dep := range info.Deps {
			if dep.Path == name {
				e.Libraries[name] = dep.Version
			}
		}
	}
	return e
}

// processor is the model's name as Linux tells it, or empty.
func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func firstLine(name string) string {
	text, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}
