// Package plan derives when a definition is due: pure functions of a definition and an
// instant. It also refuses definitions that cannot be planned (Validate, Resolve), and
// describes schedules in words (Describe, PreviewSchedule).
package plan
