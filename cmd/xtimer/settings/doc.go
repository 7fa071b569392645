// Package settings is what a server is told: settings.go names each setting, env.go and
// yaml.go read them from the environment and the file, and print.go shows them.
package settings
