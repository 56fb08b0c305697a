// posenc: the command line. Exit status 0 success, 1 failed check or rejected input, 2 usage error.

#include <torch/version.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/describe.h"
#include "cli/error.h"
#include "cli/help_format.h"
#include "cli/usage.h"
#include "platform/streams.h"
#include "posenc/version.h"

namespace {

using posenc::cli::for_terminal;
using posenc::cli::message_of;

// "posenc run", or "posenc" if the subcommand is not known yet.
std::string command_of(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? "posenc" : "posenc " + chosen.front()->get_name();
}

// The versions that a bug report needs: results also depend on LibTorch.
std::string version_text() {
  return std::string("posenc ") + posenc::version() + ", built with LibTorch " + TORCH_VERSION;
}

// Users also try `version` and `help` as subcommands.
void add_version_and_help(CLI::App& app) {
  app.set_version_flag("--version,-V", version_text());
  app.add_subcommand("version",
                     "Print the version of posenc and of the LibTorch that it was built with.")
      ->callback([] { fmt::print("{}\n", version_text()); })
      ->footer("Example:\n  posenc version");
  auto* help = app.add_subcommand("help", "Print the help of posenc or of a subcommand.");
  auto subject = std::make_shared<std::string>();
  help->add_option("SUBCOMMAND", *subject, "the subcommand; default: posenc itself");
  help->footer("Example:\n  posenc help table");
  help->callback([&app, subject] {
    if (subject->empty()) {  // app.help() would print the help of `help`
      const auto mode = CLI::AppFormatMode::Normal;
      fmt::print("{}", app.get_formatter()->make_help(&app, app.get_name(), mode));
      return;
    }
    const auto is_meant = [&](const CLI::App* sub) { return sub->get_name() == *subject; };
    const auto found = app.get_subcommands(is_meant);
    if (found.empty()) {
      throw CLI::ParseError(posenc::cli::unknown_subcommand(app, *subject), 2);
    }
    fmt::print("{}", found.front()->help(app.get_name()));
  });
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

int run(CLI::App& app, int argc, char** argv, int& status) {
  try {
    app.parse(arguments_of(argc, argv));
  } catch (const CLI::Success& success) {  // --help
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    const auto name = command_of(app);
    const auto text = for_terminal(posenc::cli::usage_message(app, error));
    posenc::cli::print_error("{}: {}\nTry: {} --help\n", name, text, name);
    return 2;
  } catch (const std::exception& error) {
    posenc::cli::print_error("{}: {}\n", command_of(app), for_terminal(message_of(error)));
    return 1;
  }
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  posenc::platform::reserve_standard_descriptors();
  CLI::App app(
      "Inspect, convert, verify and run PyTorch weights in C++, and compute positional encodings.",
      "posenc");
  app.require_subcommand(1);
  app.footer(
      "Exit status: 0 success, 1 failed check or rejected input, 2 usage error.\n"
      "Example:\n  posenc verify model.pt");
  app.formatter(std::make_shared<posenc::cli::HelpFormat>());
  add_version_and_help(app);
  app.add_flag_callback(
         "--describe",
         [&app] {
           fmt::print("{}\n", posenc::cli::description_of(app));
           throw CLI::Success();
         },
         "print the command line as JSON")
      ->group("");  // for the tools that make the man page and the completions
  int status = 0;
  posenc::cli::add_verify(app, status);
  posenc::cli::add_run(app);
  posenc::cli::add_table(app);
  posenc::cli::add_rotary(app);
  posenc::cli::add_presets(app);
  posenc::cli::add_identify(app);
  posenc::cli::add_inspect(app);
  posenc::cli::add_convert(app);
  posenc::cli::add_encode(app);
  posenc::cli::add_translate(app);

  const int result = run(app, argc, argv, status);
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
    posenc::cli::print_error("{}: the output could not be written\n", command_of(app));
    return 1;
  }
  return result;
}
