// Reads JSON [{"name", "source"}] and says what the TypeScript compiler makes of each file.
"use strict";
const fs = require("fs");
const vm = require("vm");
const ts = require("typescript");

const files = JSON.parse(fs.readFileSync(0, "utf8"));
const options = {
  strict: true, noEmit: true, noUncheckedIndexedAccess: true, target: ts.ScriptTarget.ES2020,
  module: ts.ModuleKind.ES2020, types: [],
};
const sources = new Map(files.map((file) => [file.name + ".ts", file.source]));
const host = ts.createCompilerHost(options);
const inner = host.getSourceFile.bind(host);
const known = new Map();
host.getSourceFile = (name, version) => {
  if (!known.has(name)) {
    const text = sources.get(name);
    known.set(name, text === undefined
      ? inner(name, version)
      : ts.createSourceFile(name, text, version, true));
  }
  return known.get(name);
};
host.fileExists = (name) => sources.has(name) || ts.sys.fileExists(name);
const program = ts.createProgram([...sources.keys()], options, host);

function plain(key, value) {
  const isText = typeof value === "bigint" || (typeof value === "number" && !isFinite(value));
  return isText ? String(value) : value;
}

// The first source is the client alone; a table may be called HoldfastAnything too.
const own = new Set(
  program.getSourceFile([...sources.keys()][0]).statements
    .filter((statement) => ts.isInterfaceDeclaration(statement))
    .map((statement) => statement.name.text));

function look(name) {
  const source = program.getSourceFile(name);
  const problems = [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)];
  const found = { name: name.slice(0, -3), interfaces: {}, constants: {}, others: [] };
  found.error = problems.map((each) => ts.flattenDiagnosticMessageText(each.messageText, "\n")).join("\n");
  found.pragmas = [...source.pragmas.keys()].filter((each) => each !== "reference");
  found.directives = (source.commentDirectives || []).length;
  for (const statement of source.statements) {
    if (ts.isInterfaceDeclaration(statement) && !own.has(statement.name.text)) {
      found.interfaces[statement.name.text] = statement.members.map(
        (member) => [member.name.text, member.questionToken !== undefined]);
    } else if (ts.isVariableStatement(statement) && ts.isAsExpression(
      statement.declarationList.declarations[0].initializer)) {
      const [declaration] = statement.declarationList.declarations;
      const text = declaration.initializer.expression.getText();
      const value = vm.runInNewContext("(" + text + ")");
      found.constants[declaration.name.text] = JSON.parse(JSON.stringify(value, plain));
    } else {
      found.others.push(statement.name ? statement.name.text : ts.SyntaxKind[statement.kind]);
    }
  }
  return found;
}

process.stdout.write(JSON.stringify([...sources.keys()].map(look)));
