//go:build race

package resume

// modelRuns is how many runs TestModel makes.
const modelRuns = 1000
