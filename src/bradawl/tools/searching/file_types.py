"""Kinds of files by the names ripgrep gives them: those that are asked for, where ripgrep itself can't be."""

from bradawl.core.errors import ToolError
from bradawl.core.ports import CallContext
from bradawl.core.workspace import Command
from bradawl.tools.searching.patterns import compile_glob

_TABLE = """\
asm: *.S, *.asm, *.s
bazel: *.BUILD, *.bazel, *.bazelrc, *.bzl, BUILD, MODULE.bazel, WORKSPACE, WORKSPACE.bazel, WORKSPACE.bzlmod
c: *.[chH], *.[chH].in, *.cats
clojure: *.clj, *.cljc, *.cljs, *.cljx
cmake: *.cmake, CMakeLists.txt
config: *.cfg, *.conf, *.config, *.ini
cpp: *.[ChH], *.[ChH].in, *.[ch]pp, *.[ch]pp.in, *.[ch]xx, *.[ch]xx.in, *.cc, *.cc.in, *.hh, *.hh.in, *.inl
cs: *.cs
csharp: *.cs
css: *.css, *.scss
csv: *.csv
cython: *.pxd, *.pxi, *.pyx
dart: *.dart
diff: *.diff, *.patch
docker: *Dockerfile*
dockercompose: docker-compose.*.yml, docker-compose.yml
elixir: *.eex, *.ex, *.exs, *.heex, *.leex, *.livemd
elm: *.elm
erlang: *.erl, *.hrl
fsharp: *.fs, *.fsi, *.fsx
go: *.go
gradle: *.gradle, *.gradle.kts, gradle-wrapper.*, gradle.properties, gradlew, gradlew.bat
graphql: *.graphql, *.graphqls
groovy: *.gradle, *.groovy
h: *.h, *.hh, *.hpp
haskell: *.c2hs, *.cpphs, *.hs, *.hsc, *.lhs
hbs: *.hbs
html: *.ejs, *.htm, *.html
java: *.java, *.jsp, *.jspx, *.properties
jinja: *.j2, *.jinja, *.jinja2
jl: *.jl
js: *.cjs, *.js, *.jsx, *.mjs, *.vue
json: *.json, *.sarif, composer.lock
jsonl: *.jsonl
julia: *.jl
jupyter: *.ipynb, *.jpynb
kotlin: *.kt, *.kts
less: *.less
license: *[.-]LICEN[CS]E*, AGPL-*[0-9]*, APACHE-*[0-9]*, BSD-*[0-9]*, CC-BY-*, COPYING, COPYING[.-]*, COPYRIGHT, \
COPYRIGHT[.-]*, EULA, EULA[.-]*, GFDL-*[0-9]*, GNU-*[0-9]*, GPL-*[0-9]*, LGPL-*[0-9]*, LICEN[CS]E, LICEN[CS]E[.-]*, \
MIT-*[0-9]*, MPL-*[0-9]*, NOTICE, NOTICE[.-]*, OFL-*[0-9]*, PATENTS, PATENTS[.-]*, UNLICEN[CS]E, UNLICEN[CS]E[.-]*, \
agpl[.-]*, gpl[.-]*, lgpl[.-]*, licen[cs]e, licen[cs]e.*
lisp: *.el, *.jl, *.lisp, *.lsp, *.sc, *.scm
lock: *.lock, package-lock.json
log: *.log
lua: *.lua
make: *.mak, *.mk, Makefile.*, [Gg][Nn][Uu]makefile, [Gg][Nn][Uu]makefile.am, [Gg][Nn][Uu]makefile.in, [Mm]akefile, \
[Mm]akefile.am, [Mm]akefile.in
markdown: *.markdown, *.md, *.mdown, *.mdwn, *.mdx, *.mkd, *.mkdn
md: *.markdown, *.md, *.mdown, *.mdwn, *.mdx, *.mkd, *.mkdn
meson: meson.build, meson.options, meson_options.txt
nix: *.nix
objc: *.h, *.m
ocaml: *.ml, *.mli, *.mll, *.mly
org: *.org, *.org_archive
pascal: *.dpr, *.inc, *.lpr, *.pas, *.pp
pdf: *.pdf
perl: *.PL, *.perl, *.pl, *.plh, *.plx, *.pm, *.t
php: *.php, *.php3, *.php4, *.php5, *.php7, *.php8, *.pht, *.phtml
prolog: *.P, *.pl, *.pro, *.prolog
protobuf: *.proto
ps: *.cdxml, *.ps1, *.ps1xml, *.psd1, *.psm1
puppet: *.epp, *.erb, *.pp, *.rb
py: *.py, *.pyi
python: *.py, *.pyi
r: *.R, *.Rmd, *.Rnw, *.r, *.rmd, *.rnw
racket: *.rkt
readme: *README, README*
rst: *.rst
ruby: *.gemspec, *.rake, *.rb, *.rbw, .irbrc, Gemfile, Rakefile, config.ru
rust: *.rs
sass: *.sass, *.scss
scala: *.sbt, *.scala
sh: *.bash, *.bashrc, *.csh, *.cshrc, *.env, *.ksh, *.kshrc, *.sh, *.tcsh, *.zsh, .bash_login, .bash_logout, \
.bash_profile, .bashrc, .cshrc, .env, .kshrc, .login, .logout, .profile, .tcshrc, .zlogin, .zlogout, .zprofile, \
.zshenv, .zshrc, bash_login, bash_logout, bash_profile, bashrc, profile, zlogin, zlogout, zprofile, zshenv, zshrc
solidity: *.sol
sql: *.psql, *.sql
svelte: *.svelte, *.svelte.ts
svg: *.svg
swift: *.swift
systemd: *.automount, *.conf, *.device, *.link, *.mount, *.path, *.scope, *.service, *.slice, *.socket, *.swap, \
*.target, *.timer
tcl: *.tcl
tex: *.bib, *.cls, *.dtx, *.ins, *.ltx, *.sty, *.tex
tf: *.terraform.lock.hcl, *.terraformrc, *.tf, *.tf.json, *.tfrc, *.tfvars, *.tfvars.json, terraform.rc
thrift: *.thrift
toml: *.toml, Cargo.lock
ts: *.cts, *.mts, *.ts, *.tsx
txt: *.txt
typescript: *.cts, *.mts, *.ts, *.tsx
verilog: *.sv, *.svh, *.v, *.vh
vim: *.vim, .gvimrc, .vimrc, _gvimrc, _vimrc, gvimrc, vimrc
vue: *.vue
wgsl: *.wgsl
xml: *.dtd, *.rng, *.sch, *.xhtml, *.xjb, *.xml, *.xml.dist, *.xsd, *.xsl, *.xslt
yaml: *.yaml, *.yml
zig: *.zig
zsh: *.zsh, .zlogin, .zlogout, .zprofile, .zshenv, .zshrc, zlogin, zlogout, zprofile, zshenv, zshrc
"""  # `rg --type-list` of ripgrep 15.2, abridged (2026-11)
_SUGGESTED = 5


def known_names(file_type: str) -> tuple[str, ...]:
    """The patterns of names that a common type means; none for others."""
    return _patterns(_TABLE, file_type)


def _patterns(table: str, file_type: str) -> tuple[str, ...]:
    start = f"\n{table}".find(f"\n{file_type}: ")
    return tuple(table[start:].partition("\n")[0].partition(": ")[2].split(", ")) if start >= 0 else ()


async def names_of_type(file_type: str, rg: str | None, context: CallContext) -> tuple[str, ...]:
    """The patterns of names that any type means. Raises `ToolError` for one that does not exist."""
    if known := known_names(file_type):
        return known
    table = _TABLE
    if rg is not None:
        command = Command((rg, "--no-config", "--type-list"), "/", is_helper=True)
        listed = await context.processes.run(command, context.grant)
        table = listed.stdout.decode("utf-8", "replace") or _TABLE
    if names := _patterns(table, file_type):
        return names
    types = {name: patterns for name, _, patterns in (line.partition(": ") for line in table.splitlines()) if name}
    raise ToolError(f"there is no type {file_type}{_near(file_type, types)}; include takes patterns as *.{file_type}")


def is_named(patterns: tuple[str, ...], path: str) -> bool:
    """Whether the name of a file is one of a type; where there are no patterns, any is."""
    return not patterns or bool(compile_glob(f"{{{','.join(patterns)}}}").match(path.rpartition("/")[2]))


def _near(file_type: str, types: dict[str, str]) -> str:
    import difflib

    bare = file_type.lstrip("*.").lower()
    by_name = [name for name, patterns in types.items() if f"*.{bare}" in patterns.split(", ")]
    near = list(dict.fromkeys((*by_name, *difflib.get_close_matches(bare, types, _SUGGESTED, 0.6))))[:_SUGGESTED]
    near = near or [name for name in ("py", "js", "ts", "rust", "go") if name in types]
    return f"; there are {', '.join(near)} and others"
