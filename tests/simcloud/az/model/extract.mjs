// Writes azure.json: what Azure's own JavaScript packages know of the operations that we use.
//
// Run once for new versions, with the packages of packages.json unpacked in FOLDER (`npm pack` each,
// and unpack it into a folder of the archive's name):   node extract.mjs FOLDER > azure.json
// What is checked with it does not belong here, see ../shapes.py.

import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

const wanted = JSON.parse(readFileSync(new URL("packages.json", import.meta.url)));
const OUTDATED = new Set(["VirtualMachineSizeTypes"]); // the package says so itself
const types = {};
const operations = {};
const sources = {};

function folderOf(name, version) {
  return `${name.replace("@", "").replace("/", "-")}-${version}`;
}

// The sources, whether the package is an ES module or was bundled
function sourcesOf(root) {
  return [join(root, "dist/esm"), join(root, "dist-esm/src")].find(existsSync);
}

function exported(path, scope) {
  const text = readFileSync(path, "utf8")
    .replace(/^import [^;]*;/gm, "")
    .replace(/export (?:const|let|var) ([$\w]+) =/g, "__all.$1 =")
    .replace(/export var (\w+);/g, "var $1 = __all.$1 = {};")
    .replace(/^\/\/# source.*$/gm, "");
  new Function("__all", `with (__all) { ${text} }`)(scope);
  return scope;
}

// Which named type a property has: only the declarations say it of enumerations that may grow
function declared(text) {
  const found = {};
  for (const [, name, body] of text.matchAll(/^export (?:declare )?interface (\w+)[^{]*\{\n([\s\S]*?)^\}/gm)) {
    found[name] = {};
    for (const [, , property, kind] of body.matchAll(/^\s+(readonly )?(\w+)\??: (\w+)(?:\[\])?;/gm)) {
      found[name][property] = kind;
    }
  }
  return found;
}

class Package {
  constructor(label, root) {
    this.label = label;
    const models = join(sourcesOf(root), "models");
    this.mappers = exported(join(models, "mappers.js"), {});
    this.known = exported(join(models, "index.js"), {});
    const bundled = existsSync(join(root, "types"));
    const folder = bundled ? join(root, "types") : models;
    const file = readdirSync(folder).find((each) => each.endsWith(".d.ts"));
    this.declared = declared(readFileSync(join(folder, file), "utf8"));
    const scope = {};
    for (const [name, mapper] of Object.entries(this.mappers)) scope[`${name}Mapper`] = mapper;
    this.parameters = exported(join(models, "parameters.js"), scope);
    this.root = root;
  }

  type(className) {
    const name = `${this.label}.${className}`;
    if (name in types) return name;
    types[name] = {};
    const mapper = this.mappers[className];
    if (!mapper) throw new Error(`no type ${name}`);
    for (const [js, each] of Object.entries(mapper.type.modelProperties ?? {})) {
      this.place(types[name], name, each, this.declared[className]?.[js]);
    }
    return name;
  }

  // Packages flatten `properties`; the wire does not
  place(owner, ownerName, mapper, kind) {
    const path = mapper.serializedName.split(/(?<!\\)\./).map((each) => each.replaceAll("\\.", "."));
    const last = path.pop();
    for (const part of path) {
      ownerName = `${ownerName}#${part}`;
      owner[part] ??= { is: "object", type: ownerName };
      types[ownerName] ??= {};
      // What is required inside makes the outside required
      if (mapper.required && !mapper.readOnly) owner[part].required = true;
      owner = types[ownerName];
    }
    owner[last] = this.value(mapper, kind);
  }

  value(mapper, kind) {
    const made = this.kindOf(mapper.type, kind);
    if (mapper.required) made.required = true;
    if (mapper.readOnly) made.readOnly = true;
    if (mapper.nullable) made.nullable = true;
    for (const [rule, limit] of Object.entries(mapper.constraints ?? {})) {
      (made.limits ??= {})[rule] = limit instanceof RegExp ? limit.source : limit;
    }
    return made;
  }

  kindOf(type, kind) {
    switch (type.name) {
      case "Composite":
        return { is: "object", type: this.type(type.className) };
      case "Sequence":
        return { is: "array", of: this.value(type.element, kind) };
      case "Dictionary":
        return { is: "map", of: this.value(type.value, undefined) };
      case "Enum":
        return { is: "string", values: type.allowedValues };
      case "String": {
        const known = OUTDATED.has(kind) ? undefined : this.known[`Known${kind}`];
        return known ? { is: "string", values: Object.values(known) } : { is: "string" };
      }
      case "Number":
        return { is: "number" };
      default:
        return { is: type.name.toLowerCase() };
    }
  }

  // The operations of one file, by their names; nothing exports them
  specs(file) {
    const text = readFileSync(join(sourcesOf(this.root), "operations", `${file}.js`), "utf8");
    const found = {};
    for (const [, name, body] of text.matchAll(/^const (\w+)OperationSpec = (\{[\s\S]*?^\});/gm)) {
      const make = new Function("Mappers", "Parameters", "serializer", `return ${body}`);
      found[name] = make(this.mappers, this.parameters, null);
    }
    return found;
  }

  operation(file, name) {
    const spec = this.specs(file)[name];
    if (!spec) throw new Error(`no operation ${file}.${name}`);
    const answers = {};
    for (const [status, answer] of Object.entries(spec.responses)) {
      if (status === "default") continue;
      const body = answer.bodyMapper;
      answers[status] = body?.type.className ? this.type(body.type.className) : null;
    }
    const query = (spec.queryParameters ?? []).map((each) => each.mapper);
    const version = query.find((each) => each.serializedName === "api-version");
    const made = { method: spec.httpMethod, path: spec.path, version: version?.defaultValue };
    const body = spec.requestBody?.mapper;
    if (body) {
      made.body = this.type(body.type.className);
      if (body.required) made.bodyRequired = true;
    }
    made.query = Object.fromEntries(
      query
        .filter((each) => each !== version)
        .map((each) => [each.serializedName, this.value(each, undefined)]),
    );
    made.answers = answers;
    return made;
  }
}

for (const [label, { name, version, operations: files, types: more }] of Object.entries(wanted)) {
  const root = join(process.argv[2], folderOf(name, version), "package");
  const unpacked = JSON.parse(readFileSync(join(root, "package.json")));
  if (unpacked.version !== version) throw new Error(`${root} is ${unpacked.version}`);
  sources[label] = { package: name, version, license: unpacked.license };
  const found = new Package(label, root);
  for (const [file, names] of Object.entries(files)) {
    for (const each of names) operations[`${file}.${each}`] = found.operation(file, each);
  }
  for (const each of more ?? []) found.type(each);
}

const sorted = (all) => Object.fromEntries(Object.entries(all).sort(([a], [b]) => (a < b ? -1 : 1)));
const lines = (all) =>
  Object.entries(sorted(all))
    .map(([key, value]) => `${JSON.stringify(key)}: ${JSON.stringify(value)}`)
    .join(",\n");
process.stdout.write(
  `{"sources": ${JSON.stringify(sources)},\n"operations": {\n${lines(operations)}\n},\n` +
    `"types": {\n${lines(types)}\n}}\n`,
);
