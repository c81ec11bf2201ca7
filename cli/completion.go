package cli

import (
	"io"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/flag"
)

var completionCommand = &cli.Command{
	Name:      "completion",
	Usage:     "print a script that completes commands and flags in bash, zsh or fish",
	ArgsUsage: "[bash|zsh|fish]",
	Description: "In bash and zsh, for the current shell:\n" +
		"   source <(lowtoggle completion)\n" +
		"For every new shell, add this line to ~/.bashrc or ~/.zshrc. In fish:\n" +
		"   lowtoggle completion fish > ~/.config/fish/completions/lowtoggle.fish\n" +
		"Packages for distributions install one script for each shell:\n" +
		"   lowtoggle completion bash > lowtoggle\n" +
		"   lowtoggle completion zsh > _lowtoggle\n" +
		"   lowtoggle completion fish > lowtoggle.fish",
	Action: func(c *cli.Context) error {
		shell := "bash"
		if c.NArg() > 0 {
			args, err := flag.Arguments(c, "SHELL")
			if err != nil {
				return err
			}
			shell = args[0]
		}
		script, ok := completionScripts[shell]
		if !ok {
			return exit.Usagef("no completion for %q: give bash, zsh or fish", shell)
		}
		_, err := io.WriteString(c.App.Writer, script)
		return err
	},
}

// completionScripts holds a script for each shell. The scripts ask the program for the names of commands, or of a
// command's flags. For all other words, the shell completes file names. zsh may also source the script for bash. The
// script for zsh may be installed in $fpath.
var completionScripts = map[string]string{
	"bash": `[[ -n ${ZSH_VERSION-} ]] && autoload -U +X bashcompinit && bashcompinit
_lowtoggle() {
	local word=${COMP_WORDS[COMP_CWORD]}
	local ask=()
	if (( COMP_CWORD > 1 )); then
		ask=("${COMP_WORDS[1]}")
		[[ $word == -* ]] && ask+=(-)
	fi
	COMPREPLY=($(compgen -W "$(lowtoggle "${ask[@]}" ` + completionFlag + ` 2>/dev/null)" -- "$word"))
}
complete -o default -F _lowtoggle lowtoggle
`,
	"zsh": `#compdef lowtoggle
_lowtoggle() {
	local -a names
	if (( CURRENT == 2 )); then
		names=(${(f)"$(lowtoggle ` + completionFlag + ` 2>/dev/null)"})
	elif [[ $words[CURRENT] == -* ]]; then
		names=(${(f)"$(lowtoggle $words[2] - ` + completionFlag + ` 2>/dev/null)"})
	else
		_files
		return
	fi
	compadd -a names
}
if [[ $funcstack[1] == _lowtoggle ]]; then
	_lowtoggle "$@"
else
	compdef _lowtoggle lowtoggle
fi
`,
	"fish": `function __lowtoggle_before_command
	test (count (commandline -opc)) -eq 1
end
function __lowtoggle_at_flag
	not __lowtoggle_before_command
	and string match -q -- '-*' (commandline -ct)
end
complete -c lowtoggle -n __lowtoggle_before_command -f -a '(lowtoggle ` + completionFlag + ` 2>/dev/null)'
complete -c lowtoggle -n __lowtoggle_at_flag -f -a '(lowtoggle (commandline -opc)[2] - ` + completionFlag + ` 2>/dev/null)'
`,
}
