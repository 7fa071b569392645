// Package scheduler fires tasks on time, at least once: it wires the stages that package
// engine describes, one file a stage.
package scheduler
