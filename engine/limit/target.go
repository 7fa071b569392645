package limit

import (
	"strconv"
	"strings"

	"xtimer/engine"
	"xtimer/engine/flow"
)

// TargetKind is the kind of the objects of targets. They hold for all apps: their app is
// EachApp. The name of one is scheme/host/port.
const TargetKind = "target"

// TargetKey is the key of a target's object.
func TargetKey(scheme, host, port string) (engine.ObjectKey, error) {
	scheme = strings.ToLower(scheme)
	if scheme != "http" && scheme != "https" {
		return engine.ObjectKey{}, engine.Invalid("scheme", "unknown_value", "must be http or https")
	}
	if strings.Trim(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:[]") != "" || strings.Trim(host, ".:[]") == "" && !strings.Contains(host, "::") {
		return engine.ObjectKey{}, engine.Invalid("host", "bad_name", "must be the name or the address of a host, of ASCII characters")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return engine.ObjectKey{}, engine.Invalid("port", "out_of_range", "must be a number from 1 to 65535")
	}
	_, rest, _ := strings.Cut(flow.Target(scheme, host, port), "://")
	i := strings.LastIndexByte(rest, ':')
	return engine.ObjectKey{Kind: TargetKind, App: EachApp, Name: scheme + "/" + strings.Trim(rest[:i], "[]") + "/" + rest[i+1:]}, nil
}

// targetName is the name of the rule of a target's object.
func targetName(name string) flow.Name {
	scheme, rest, _ := strings.Cut(name, "/")
	i := strings.LastIndexByte(rest, '/')
	return flow.Name{Kind: flow.OfTarget, Key: flow.Target(scheme, rest[:max(i, 0)], rest[i+1:])}
}
