// Reads JSON [{"name", "source"}] and says what the Go parser and type checker make of each file.
package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/format"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"reflect"
	"strconv"
	"strings"
)

type file struct{ Name, Source string }

type field struct {
	Name, Type string
	Tags       map[string]string
}

type seen struct {
	Name     string
	Error    string
	Unformed string // the first line that gofmt would change
	Package  string
	Consts   map[string]string
	Structs  map[string][]field
	Others   []string // all other declarations, by name
}

var keys = []string{"db", "table", "schema", "maxlen", "type", "default", "choices"}

func look(one file, imports types.Importer, typed bool) seen {
	found := seen{Name: one.Name, Consts: map[string]string{}, Structs: map[string][]field{}}
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, one.Name, one.Source, parser.ParseComments)
	if err != nil {
		found.Error = err.Error()
		return found
	}
	formatted, err := format.Source([]byte(one.Source))
	found.Unformed = difference(one.Source, string(formatted))
	found.Package = parsed.Name.Name
	for _, declaration := range parsed.Decls {
		switch known := declaration.(type) {
		case *ast.FuncDecl:
			found.Others = append(found.Others, known.Name.Name)
		case *ast.GenDecl:
			for _, spec := range known.Specs {
				found.add(spec)
			}
		}
	}
	if typed {
		config := types.Config{Importer: imports}
		if _, err := config.Check("model", files, []*ast.File{parsed}, nil); err != nil {
			found.Error = err.Error()
		}
	}
	return found
}

func difference(one, other string) string {
	ours, theirs := strings.Split(one, "\n"), strings.Split(other, "\n")
	for at := range ours {
		if at >= len(theirs) || ours[at] != theirs[at] {
			return fmt.Sprintf("%q", ours[at:at+1])
		}
	}
	return ""
}

func (s *seen) add(spec ast.Spec) {
	switch known := spec.(type) {
	case *ast.ValueSpec:
		for at, name := range known.Names {
			value := "?"
			if at < len(known.Values) {
				if literal, ok := known.Values[at].(*ast.BasicLit); ok && literal.Kind == token.STRING {
					value, _ = strconv.Unquote(literal.Value)
				}
			}
			s.Consts[name.Name] = value
		}
	case *ast.ImportSpec:
		s.Others = append(s.Others, "import "+known.Path.Value)
	case *ast.TypeSpec:
		structure, ok := known.Type.(*ast.StructType)
		if !ok {
			s.Others = append(s.Others, known.Name.Name)
			return
		}
		s.Structs[known.Name.Name] = []field{}
		for _, each := range structure.Fields.List {
			tags := map[string]string{}
			if each.Tag != nil {
				text, _ := strconv.Unquote(each.Tag.Value)
				for _, key := range keys {
					if value, ok := reflect.StructTag(text).Lookup(key); ok {
						tags[key] = value
					}
				}
			}
			for _, name := range each.Names {
				one := field{name.Name, types.ExprString(each.Type), tags}
				s.Structs[known.Name.Name] = append(s.Structs[known.Name.Name], one)
			}
		}
	}
}

func main() {
	var files []file
	if err := json.NewDecoder(os.Stdin).Decode(&files); err != nil {
		panic(err)
	}
	imports := importer.Default()
	all := []seen{}
	for _, one := range files {
		all = append(all, look(one, imports, one.Name != "public"))
	}
	if err := json.NewEncoder(os.Stdout).Encode(all); err != nil {
		panic(err)
	}
}
