// posenc: the command line. Exit status 0 fine, 1 the check failed or the input was refused,
// 2 wrong use.

#include <CLI/CLI.hpp>

#include <cstdio>

#include "cli/command.h"
#include "cli/error.h"

namespace {

using posenc::cli::message_of;

// "posenc run", or "posenc" before a subcommand is known.
std::string name_of(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? "posenc" : "posenc " + chosen.front()->get_name();
}

// What CLI11 has to say, with the subcommand that was probably meant.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error) {
  std::string text = error.what();
  const auto rest = app.remaining();
  if (app.get_subcommands().empty() && !rest.empty() && rest.front().rfind("-", 0) != 0) {
    std::vector<std::string> names;
    for (const auto* sub : app.get_subcommands({})) names.push_back(sub->get_name());
    text = "there is no subcommand " + rest.front() + posenc::cli::suggestion(rest.front(), names);
  }
  return text;
}

int run(CLI::App& app, int argc, char** argv, int& status) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    const auto name = name_of(app);
    fmt::print(stderr, "{}: {}\nTry: {} --help\n", name, usage_message(app, error), name);
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", name_of(app), message_of(error));
    return 1;
  }
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Positional encodings and token embeddings in C++, held against PyTorch.", "posenc");
  app.require_subcommand(1);
  app.footer(
      "Exit status: 0 fine, 1 the check failed or the input was refused, 2 wrong use.\n"
      "Example:\n  posenc verify model.pt");
  int status = 0;
  posenc::cli::add_verify(app, status);
  posenc::cli::add_run(app);
  posenc::cli::add_table(app);
  posenc::cli::add_presets(app);
  posenc::cli::add_identify(app);
  posenc::cli::add_plot(app);
  posenc::cli::add_inspect(app);
  posenc::cli::add_convert(app);
  posenc::cli::add_pronounce(app);
  posenc::cli::add_translate(app);
  posenc::cli::add_train_pronounce(app, status);

  const int result = run(app, argc, argv, status);
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
    fmt::print(stderr, "{}: the output could not be written\n", name_of(app));
    return 1;
  }
  return result;
}
