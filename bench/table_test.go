package main

import "testing"

func TestFormat(t *testing.T) {
	for _, c := range []struct{ name, got, want string }{
		{"count", count(0), "0"},
		{"count of three digits", count(999.4), "999"},
		{"count of four", count(1000), "1,000"},
		{"count of seven", count(1234567.8), "1,234,568"},
		{"negative count", count(-123), "-123"},
		{"negative count of four", count(-1234), "-1,234"},
		{"no time", micros(0), "-"},
		{"time below ten", micros(8.204), "8.20 µs"},
		{"time below a hundred", micros(20.31), "20.3 µs"},
		{"time below a thousand", micros(999.4), "999 µs"},
		{"a millisecond", micros(999.6), "1.00 ms"},
		{"a second", micros(1.5e6), "1.50 s"},
		{"bytes", bytes(64), "64 B"},
		{"KiB", bytes(64 << 10), "64 KiB"},
		{"part of KiB", bytes(18.34 * 1024), "18.3 KiB"},
		{"MiB", bytes(1 << 20), "1 MiB"},
		{"shrunk", bytes(-2048), "-2 KiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.got != c.want {
				t.Errorf("%s = %q, want %q", c.name, c.got, c.want)
			}
		})
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		name   string
		values []float64
		want   float64
	}{
		{"none", nil, 0},
		{"one", []float64{3}, 3},
		{"odd", []float64{9, 1, 4}, 4},
		{"even", []float64{4, 1, 9, 2}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := median(c.values); got != c.want {
				t.Errorf("median(%v) = %v, want %v", c.values, got, c.want)
			}
		})
	}
}
