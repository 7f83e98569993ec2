/*
 * frame/docs_completion.c - completion scripts for bash, zsh and fish, made from the
 * commands' tables: commands, options of each command, choices of values; operands
 * complete to files. The installed files (cli/completions) run `zarrc completion` once in
 * a shell, at the first completion. The scripts themselves never run zarrc.
 */
#include "frame/frame_int.h"

#include <string.h>

static void add_words(struct cli_string *out, const char *choices)
{
    for (const char *c = choices; *c; c++)
        cli_string_add(out, *c == '|' ? " " : c, 1);
}

/* ---- bash ---- */

static void bash_names(const struct cli_option *o, struct cli_string *out)
{
    for (; o && o->name; o++) {
        if (o->letter)
            cli_string_printf(out, " -%c", o->letter);
        cli_string_printf(out, " --%s", o->name);
    }
}

/* One case of bash for each option with choices: "command,--option) words='...' ;;". */
static void bash_choices(const char *command, const struct cli_option *o,
                         struct cli_string *out)
{
    for (; o && o->name; o++) {
        if (!o->choices)
            continue;
        cli_string_printf(out, "    %s,--%s", command, o->name);
        if (o->letter)
            cli_string_printf(out, "|%s,-%c", command, o->letter);
        cli_string_printf(out, ") words='");
        add_words(out, o->choices);
        cli_string_printf(out, "' ;;\n");
    }
}

static void bash(struct cli_string *out)
{
    cli_string_printf(out, "# bash completion of zarrc; written by zarrc completion\n"
                           "_zarrc()\n{\n"
                           "    local cur prev words='' command='' i\n"
                           "    cur=${COMP_WORDS[COMP_CWORD]}\n"
                           "    prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
                           "    [[ $cur == = ]] && cur=''\n"
                           "    [[ $prev == = ]] && prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
                           "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
                           "        if [[ ${COMP_WORDS[i]} != -* ]]; then\n"
                           "            command=${COMP_WORDS[i]}\n            break\n"
                           "        fi\n    done\n"
                           "    case $command,$prev in\n");
    bash_choices("*", cli_common_options, out);
    for (size_t i = 0; cli_commands[i]; i++)
        bash_choices(cli_commands[i]->name, cli_commands[i]->options, out);
    cli_string_printf(out,
                      "    esac\n"
                      "    if [[ -n $words ]]; then\n"
                      "        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                      "        return\n    fi\n"
                      "    if [[ -z $command && $cur != -* ]]; then\n        words='");
    for (size_t i = 0; cli_commands[i]; i++)
        cli_string_printf(out, "%s%s", i ? " " : "", cli_commands[i]->name);
    cli_string_printf(out, "'\n    elif [[ $cur == -* ]]; then\n        words='");
    bash_names(cli_common_options, out);
    cli_string_printf(out, "'\n        case $command in\n");
    for (size_t i = 0; cli_commands[i]; i++)
        if (cli_commands[i]->options) {
            cli_string_printf(out, "        %s) words+='", cli_commands[i]->name);
            bash_names(cli_commands[i]->options, out);
            cli_string_printf(out, "' ;;\n");
        }
    cli_string_printf(out,
                      "        esac\n    else\n"
                      "        COMPREPLY=($(compgen -f -- \"$cur\"))\n"
                      "        compopt -o filenames 2>/dev/null\n        return\n    fi\n"
                      "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\n"
                      "complete -F _zarrc zarrc\n");
}

/* ---- zsh ---- */

/* Text inside '...[...]' of _arguments: escapes quotes, brackets and colons. */
static void zsh_text(struct cli_string *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            cli_string_printf(out, "'\\''");
        else if (strchr("[]:\\", *text))
            cli_string_printf(out, "\\%c", *text);
        else
            cli_string_add(out, text, 1);
    }
}

static void zsh_names(const struct cli_option *o, struct cli_string *out)
{
    const char *plus = o->value ? "+" : "", *equals = o->value ? "=" : "";
    const bool repeat = (o->flags & CLI_REPEAT) != 0;

    if (!o->letter)
        cli_string_printf(out, "        '%s--%s%s[", repeat ? "*" : "", o->name, equals);
    else if (repeat) /* '*'{-v,--verbose}'[...]' */
        cli_string_printf(out, "        '*'{-%c%s,--%s%s}'[", o->letter, plus, o->name,
                          equals);
    else /* '(-q --quiet)'{-q,--quiet}'[...]' */
        cli_string_printf(out, "        '(-%c --%s)'{-%c%s,--%s%s}'[", o->letter, o->name,
                          o->letter, plus, o->name, equals);
}

static void zsh_options(const struct cli_option *o, struct cli_string *out)
{
    for (; o && o->name; o++) {
        zsh_names(o, out);
        zsh_text(out, o->help);
        cli_string_add(out, "]", 1);
        if (o->value)
            cli_string_printf(out, ":%s:", o->value);
        if (o->choices) {
            cli_string_add(out, "(", 1);
            add_words(out, o->choices);
            cli_string_add(out, ")", 1);
        } else if (o->flags & CLI_VALUE_FILE) {
            cli_string_printf(out, "_files");
        }
        cli_string_printf(out, "'\n");
    }
}

static void zsh(struct cli_string *out)
{
    cli_string_printf(out, "#compdef zarrc\n# written by zarrc completion\n_zarrc() {\n"
                           "    local -a common commands options\n    common=(\n");
    zsh_options(cli_common_options, out);
    cli_string_printf(out, "    )\n    commands=(\n");
    for (size_t i = 0; cli_commands[i]; i++) {
        cli_string_printf(out, "        '%s:", cli_commands[i]->name);
        zsh_text(out, cli_commands[i]->summary);
        cli_string_printf(out, "'\n");
    }
    cli_string_printf(
        out, "    )\n"
             "    if (( CURRENT == 2 )); then\n"
             "        _describe -t commands command commands\n"
             "        _arguments $common\n        return\n    fi\n"
             "    local command=$words[2]\n    options=()\n    case $command in\n");
    for (size_t i = 0; cli_commands[i]; i++)
        if (cli_commands[i]->options) {
            cli_string_printf(out, "    %s) options=(\n", cli_commands[i]->name);
            zsh_options(cli_commands[i]->options, out);
            cli_string_printf(out, "    ) ;;\n");
        }
    cli_string_printf(out, "    esac\n    shift words\n    (( CURRENT-- ))\n"
                           "    _arguments -s $common $options '*:file:_files'\n}\n"
                           "_zarrc \"$@\"\n");
}

/* ---- fish ---- */

static void fish_text(struct cli_string *out, const char *text)
{
    for (; *text; text++)
        if (*text == '\'' || *text == '\\')
            cli_string_printf(out, "\\%c", *text);
        else
            cli_string_add(out, text, 1);
}

static void fish_options(const char *when, const struct cli_option *o,
                         struct cli_string *out)
{
    for (; o && o->name; o++) {
        cli_string_printf(out, "complete -c zarrc%s", when);
        if (o->letter)
            cli_string_printf(out, " -s %c", o->letter);
        cli_string_printf(out, " -l %s", o->name);
        if (o->choices) {
            cli_string_printf(out, " -x -a '");
            add_words(out, o->choices);
            cli_string_printf(out, "'");
        } else if (o->value) {
            cli_string_printf(out, o->flags & CLI_VALUE_FILE ? " -r" : " -x");
        }
        cli_string_printf(out, " -d '");
        fish_text(out, o->help);
        cli_string_printf(out, "'\n");
    }
}

static void fish(struct cli_string *out)
{
    cli_string_printf(out, "# fish completion of zarrc; written by zarrc completion\n");
    for (size_t i = 0; cli_commands[i]; i++) {
        cli_string_printf(out, "complete -c zarrc -n __fish_use_subcommand -f -a %s -d '",
                          cli_commands[i]->name);
        fish_text(out, cli_commands[i]->summary);
        cli_string_printf(out, "'\n");
    }
    fish_options("", cli_common_options, out);
    for (size_t i = 0; cli_commands[i]; i++) {
        char when[80];

        snprintf(when, sizeof when, " -n '__fish_seen_subcommand_from %s'",
                 cli_commands[i]->name);
        fish_options(when, cli_commands[i]->options, out);
    }
}

bool cli_completion(const char *shell, struct cli_string *out)
{
    if (strcmp(shell, "bash") == 0)
        bash(out);
    else if (strcmp(shell, "zsh") == 0)
        zsh(out);
    else if (strcmp(shell, "fish") == 0)
        fish(out);
    else
        return false;
    return true;
}
