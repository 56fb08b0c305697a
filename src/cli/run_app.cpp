#include "cli/run_app.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "base/platform/streams.h"
#include "cli/error.h"
#include "cli/usage.h"

namespace posenc::cli {
namespace {

// "posenc table", or "posenc" if the subcommand is not known yet.
std::string command_of(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return app.get_name() + (chosen.empty() ? "" : " " + chosen.front()->get_name());
}

// Returns the arguments in reverse order, as CLI11 expects. `--name=`, as a script writes it if its
// variable is empty, becomes `--name ''`: CLI11 would take the next argument as its value.
std::vector<std::string> arguments_of(int argc, char** argv) {
  std::vector<std::string> arguments;
  bool may_be_option = true;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    may_be_option = may_be_option && argument != "--";
    const bool is_empty = argument.size() > 3 && argument.starts_with("--") &&
                          argument.find('=') == argument.size() - 1;
    if (may_be_option && is_empty) {
      arguments.push_back(argument.substr(0, argument.size() - 1));
      arguments.emplace_back();
    } else {
      arguments.push_back(argument);
    }
  }
  std::reverse(arguments.begin(), arguments.end());
  return arguments;
}

int run(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(arguments_of(argc, argv));
  } catch (const CLI::Success& success) {  // --help
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    const auto name = command_of(app);
    const auto text = for_terminal(usage_message(app, error));
    print_error("{}: {}\nTry: {} --help\n", name, text, name);
    return 2;
  } catch (const std::exception& error) {
    print_error("{}: {}\n", command_of(app), for_terminal(message_of(error)));
    return 1;
  }
  return 0;
}

}  // namespace

int run_app(CLI::App& app, int argc, char** argv) {
  platform::reserve_standard_descriptors();
  const int status = run(app, argc, argv);
  // A command that fails has said why, be it this.
  if (status == 0 && (std::fflush(stdout) != 0 || std::ferror(stdout))) {
    print_error("{}: the output could not be written\n", command_of(app));
    return 1;
  }
  return status;
}

}  // namespace posenc::cli
