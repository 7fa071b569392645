package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// schemaOf is the schema of a kind, with the definitions that it refers to.
func schemaOf(kind string, all map[string]map[string]any) map[string]any {
	used := map[string]any{}
	var use func(v any)
	use = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				name := strings.TrimPrefix(ref, "#/definitions/")
				if _, seen := used[name]; !seen {
					used[name] = strict(all[name])
					override(name, used)
					use(used[name])
				}
			}
			for _, child := range v {
				use(child)
			}
		case []any:
			for _, child := range v {
				use(child)
			}
		}
	}
	top := strict(all[kind]).(map[string]any)
	delete(top["properties"].(map[string]any), "status")
	use(top)
	top["definitions"] = used
	return top
}

// override gives the two types that are written in several ways all of these.
func override(name string, used map[string]any) {
	switch name {
	case "io.k8s.apimachinery.pkg.util.intstr.IntOrString":
		used[name] = map[string]any{"type": []any{"integer", "string"}}
	case "io.k8s.apimachinery.pkg.api.resource.Quantity":
		used[name] = map[string]any{"type": []any{"number", "string"}}
	}
}

// kept are the words of a schema that decide what is valid.
var kept = []string{
	"$ref", "type", "properties", "required", "items", "enum", "additionalProperties", "anyOf", "oneOf", "allOf", "not",
	"pattern", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems",
}

// strict is a copy of a schema without descriptions, in which an object has no other
// properties than those that are named.
func strict(v any) any {
	schema, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := map[string]any{}
	for word, value := range schema {
		if !slices.Contains(kept, word) {
			continue
		}
		switch value := value.(type) {
		case map[string]any:
			if word != "properties" {
				out[word] = strict(value)
				break
			}
			properties := map[string]any{}
			for name, property := range value {
				properties[name] = strict(property)
			}
			out[word] = properties
		case []any:
			list := make([]any, len(value))
			for i, one := range value {
				list[i] = strict(one)
			}
			out[word] = list
		default:
			out[word] = value
		}
	}
	if _, more := out["additionalProperties"]; out["properties"] != nil && !more {
		out["additionalProperties"] = false
	}
	return out
}

// writeSchema writes a schema with a line for each definition.
func writeSchema(name string, schema map[string]any) error {
	definitions, _ := schema["definitions"].(map[string]any)
	delete(schema, "definitions")
	top, err := json.Marshal(schema)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	b.Write(top[:len(top)-1])
	if len(definitions) > 0 {
		b.WriteString(",\"definitions\":{\n")
		for i, of := range slices.Sorted(maps.Keys(definitions)) {
			one, err := json.Marshal(definitions[of])
			if err != nil {
				return err
			}
			if i > 0 {
				b.WriteString(",\n")
			}
			fmt.Fprintf(&b, "%q:%s", of, one)
		}
		b.WriteString("\n}")
	}
	b.WriteString("}\n")
	return os.WriteFile(name+".json", b.Bytes(), 0o644)
}
