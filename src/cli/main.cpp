// posenc: the command line.

#include <fmt/format.h>
#include <torch/version.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/error.h"
#include "cli/help_format.h"
#include "cli/print.h"
#include "cli/run_app.h"
#include "cli/usage.h"
#include "posenc/version.h"

namespace {

// The versions that a bug report needs: results also depend on LibTorch.
std::string version_text() {
  return std::string("posenc ") + posenc::version() + ", built with LibTorch " + TORCH_VERSION;
}

// The subcommands of components that this build does not have, with the component.
const std::vector<std::pair<std::string, std::string>> kAbsent = {POSENC_ABSENT_COMMANDS};

// Fails if the subcommand is one of these.
void refuse_absent(const std::string& command) {
  for (const auto& [name, component] : kAbsent) {
    if (command == name)
      posenc::cli::fail(
          "the subcommand {} is in the component {}, which this build does not have; it has {}",
          name, component, POSENC_COMPONENTS);
  }
}

// The help does not list them.
void add_absent(CLI::App& app) {
  for (const auto& absent : kAbsent) {
    auto* const command = app.add_subcommand(absent.first)->allow_extras()->group("");
    command->set_help_flag();  // --help is an argument like any other
    command->callback([&absent] { refuse_absent(absent.first); });
  }
}

// Users also try `version` and `help` as subcommands.
void add_version_and_help(CLI::App& app) {
  app.set_version_flag("--version,-V", version_text());
  app.add_subcommand("version",
                     "Print the version of posenc and of the LibTorch that it was built with, and "
                     "its components.")
      ->callback(
          [] { posenc::cli::print("{}\ncomponents: {}\n", version_text(), POSENC_COMPONENTS); })
      ->footer("Example:\n  posenc version");
  auto* help = app.add_subcommand("help", "Print the help of posenc or of a subcommand.");
  auto subject = std::make_shared<std::string>();
  help->add_option("SUBCOMMAND", *subject, "the subcommand; default: posenc itself");
  help->footer("Example:\n  posenc help table");
  help->callback([&app, subject] {
    if (subject->empty()) {  // app.help() would print the help of `help`
      const auto mode = CLI::AppFormatMode::Normal;
      posenc::cli::print("{}", app.get_formatter()->make_help(&app, app.get_name(), mode));
      return;
    }
    refuse_absent(*subject);
    const auto is_meant = [&](const CLI::App* sub) { return sub->get_name() == *subject; };
    const auto found = app.get_subcommands(is_meant);
    if (found.empty()) {
      posenc::cli::fail_usage("{}", posenc::cli::unknown_subcommand(app, *subject));
    }
    posenc::cli::print("{}", found.front()->help(app.get_name()));
  });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Inspect and convert PyTorch weights, run encoders and translators, and compute positional "
      "encodings, in C++.",
      "posenc");
  app.require_subcommand(1);
  app.footer(
      "Exit status: 0 success, 1 failed check or rejected input, 2 usage error.\n"
      "Example:\n  posenc inspect model.pt");
  app.formatter(std::make_shared<posenc::cli::HelpFormat>());
  add_version_and_help(app);
  app.add_flag_callback(
         "--describe",
         [&app] {
           posenc::cli::print("{}\n", posenc::cli::description_of(app));
           throw CLI::Success();
         },
         "print the command line as JSON")
      ->group("");  // for the tools that make the man page and the completions
  for (const posenc::cli::Command* const command : posenc::cli::commands()) command->add(app);
  add_absent(app);
  return posenc::cli::run_app(app, argc, argv);
}
