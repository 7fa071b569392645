//go:build race

package local

import "flag"

func init() {
	powerSteps, errorStep, bitFlips, capTasks = 30, 17, 24, 700
	if err := flag.Set("rapid.checks", "40"); err != nil { // for TestModel
		panic(err)
	}
}
