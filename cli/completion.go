package cli

import (
	"io"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/flag"
)

var completionCommand = &cli.Command{
	Name:  "completion",
	Usage: "print a script that completes commands and flags in bash and zsh",
	Description: "For this shell:\n" +
		"   source <(lowtoggle completion)\n" +
		"For every new shell, add that line to ~/.bashrc or ~/.zshrc.",
	Action: func(c *cli.Context) error {
		if _, err := flag.Arguments(c); err != nil {
			return err
		}
		_, err := io.WriteString(c.App.Writer, completionScript)
		return err
	},
}

// completionScript asks the program for the names of its commands or of a command's flags. For anything else the
// shell completes file names.
const completionScript = `[[ -n ${ZSH_VERSION-} ]] && autoload -U +X bashcompinit && bashcompinit
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
`
