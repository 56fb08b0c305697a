// posenc verify: compares TorchScript modules with their C++ counterparts on the same inputs.

#include <ATen/core/grad_mode.h>
#include <filesystem>
#include <memory>
#include <sstream>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/error.h"
#include "cli/modules/comparison.h"
#include "cli/modules/module_spec.h"
#include "cli/modules/option_hint.h"
#include "cli/modules/script.h"
#include "cli/text_table.h"
#include "platform/streams.h"
#include "posenc/sinusoid/preset.h"
#include "posenc/sinusoid/table.h"

namespace posenc::cli {
namespace {

struct VerifyOptions {
  std::vector<std::string> files;
  std::string module, prefix;
  std::vector<std::string> params;
};

struct Report {
  std::string script_class, spec, keys, key_count, table, hint;
  std::vector<Outcome> outcomes;

  bool good() const {
    for (const auto& outcome : outcomes) {
      if (!outcome.good) return false;
    }
    return !outcomes.empty();
  }
  bool bits() const {
    for (const auto& outcome : outcomes) {
      if (!outcome.difference.equal) return false;
    }
    return true;
  }
};

constexpr std::size_t kShownPresets = 3, kShownKeys = 12;

// Names the presets that have the same bits as the table, or else the nearest one. Skips presets
// that require parameters, because the table does not contain them.
std::string presets_of(const at::Tensor& table) {
  std::vector<std::string> equal;
  std::string nearest, recipe;
  Difference least, apart;
  at::Tensor rows;
  for (const auto& entry : presets()) {
    if (entry.recipe != recipe) {  // otherwise the same bits as before
      recipe = entry.recipe;
      rows = at::Tensor();
      try {
        rows = sinusoid_table(preset(entry.name, table.size(1)), table.size(0), table.options());
      } catch (const c10::Error&) {  // wrong width, or missing parameters
      }
      if (rows.defined()) apart = difference(table, rows);
    }
    if (!rows.defined() || rows.sizes() != table.sizes()) continue;
    if (apart.equal) equal.push_back(entry.name);
    if (nearest.empty() || apart.max_abs < least.max_abs) nearest = entry.name, least = apart;
  }
  if (nearest.empty()) return fmt::format("no preset has width {}", table.size(1));
  if (equal.empty()) {
    return fmt::format("none; nearest {}, max abs {}", nearest, short_number(least.max_abs));
  }
  const std::size_t count = equal.size();
  if (count > kShownPresets) equal.resize(kShownPresets);
  const std::string rest =
      count > kShownPresets ? fmt::format(" and {} more", count - kShownPresets) : "";
  return listed(equal) + rest;
}

std::string keys_text(const ModuleSpec& spec) {
  std::vector<std::string> loaded, ignored;
  for (const auto& name : spec.loaded) loaded.push_back(shown(name));
  for (const auto& name : spec.ignored) ignored.push_back(shown(name));
  std::string text = listed(loaded, kShownKeys);
  if (!ignored.empty())
    text += "; buffers that the C++ class lacks: " + listed(ignored, kShownKeys);
  return text;
}

Report verify(const std::string& path, const VerifyOptions& options) {
  const at::NoGradGuard no_grad;
  Weights weights = read_weights(path, options.prefix);
  if (weights.format != WeightsFormat::TorchScript) {
    fail("{} contains only weights: there is no script to compare with", path);
  }
  const Script script(path, options.prefix);
  weights.class_name = script.class_name();
  if (weights.class_name.empty()) {
    fail("the prefix {} matches no part of the script", options.prefix);
  }
  ModuleSpec spec = make_module_spec(weights, options.module, Params(options.params));

  std::ostringstream printed;
  spec.module->pretty_print(printed);
  Report report{shown(weights.class_name),
                printed.str(),
                keys_text(spec),
                fmt::format("{}/{}", spec.loaded.size(), weights.tensors.size()),
                spec.table_key.empty() ? "" : presets_of(spec.table()),
                /*hint=*/"",
                outcomes_of(path, script, spec)};
  if (!report.good()) {
    report.hint = option_hint(path, script, weights, options.module, options.params);
  }
  return report;
}

std::vector<std::string> cells(const Outcome& outcome) {
  const bool compared = outcome.failure.empty();
  return {compared ? short_number(outcome.difference.max_abs) : "-",
          compared ? short_number(outcome.difference.max_ulp) : "-",
          outcome.difference.equal && compared ? "yes"
          : outcome.good                       ? "near"
                                               : "NO"};
}

void print(const std::string& path, const Report& report) {
  fmt::print("{}\n", path);
  fmt::print("  class  {}\n  C++    {}\n  keys   {}: {}\n", report.script_class, report.spec,
             report.key_count, report.keys);
  if (!report.table.empty()) fmt::print("  table  equals {}\n", report.table);
  std::vector<std::vector<std::string>> rows = {{"input", "shape", "max abs", "max ulp", "equal"}};
  std::size_t good = 0;
  for (const auto& outcome : report.outcomes) {
    rows.push_back({outcome.name, outcome.shape});
    for (auto& cell : cells(outcome)) rows.back().push_back(std::move(cell));
    good += outcome.good ? 1 : 0;
  }
  fmt::print("\n{}\n", text_table(rows, 2));
  for (const auto& outcome : report.outcomes) {
    if (outcome.failure.empty()) continue;
    fmt::print("  {}: {}\n", outcome.name, for_terminal(outcome.failure));
  }
  if (!report.hint.empty()) fmt::print("  hint: {}\n", report.hint);
  const char* agreement = !report.good()  ? ""
                          : report.bits() ? ", bit for bit"
                                          : ", up to rounding";
  fmt::print("{}: {} of {} inputs{}\n", report.good() ? "equal" : "NOT equal", good,
             report.outcomes.size(), agreement);
}

// A row of the summary of several files.
std::vector<std::string> row(const std::string& path, const Report& report) {
  Outcome whole;
  whole.good = report.good();
  std::size_t good = 0;
  for (const auto& outcome : report.outcomes) {
    whole.difference = worst(whole.difference, outcome.difference);
    if (!outcome.failure.empty()) whole.failure = outcome.failure;
    good += outcome.good ? 1 : 0;
  }
  const auto name = std::filesystem::path(path).stem().string();
  const auto spec = report.spec.substr(0, report.spec.find('('));
  std::vector<std::string> result = {name, spec.substr(spec.rfind(':') + 1), report.key_count,
                                     report.table.empty() ? "-" : report.table,
                                     fmt::format("{}/{}", good, report.outcomes.size())};
  for (auto& cell : cells(whole)) result.push_back(std::move(cell));
  return result;
}

bool verify_several(const VerifyOptions& options) {
  std::vector<std::vector<std::string>> rows = {
      {"file", "C++ class", "keys", "table equals", "inputs", "max abs", "max ulp", "equal"}};
  const bool terminal = platform::stderr_is_terminal();
  std::size_t good = 0;
  for (std::size_t i = 0; i < options.files.size(); ++i) {
    const auto& path = options.files[i];
    if (terminal) print_error("\r\033[K{}/{} {}", i + 1, options.files.size(), path);
    try {
      const Report report = verify(path, options);
      rows.push_back(row(path, report));
      if (!report.hint.empty()) {
        print_error("{}{}: {}\n", terminal ? "\r\033[K" : "", path, report.hint);
      }
      good += report.good() ? 1 : 0;
    } catch (const std::exception& error) {
      print_error("{}posenc verify: {}\n", terminal ? "\r\033[K" : "",
                  for_terminal(message_of(error)));
      rows.push_back(
          {std::filesystem::path(path).stem().string(), "rejected", "-", "-", "-", "-", "-", "NO"});
    }
    if (terminal) print_error("\r\033[K");
  }
  fmt::print("{}\n{} of {} files equal\n", text_table(rows), good, options.files.size());
  return good == options.files.size();
}

}  // namespace

void add_verify(CLI::App& app, int& status) {
  auto options = std::make_shared<VerifyOptions>();
  auto* sub =
      app.add_subcommand("verify",
                         "Load TorchScript weights into the corresponding C++ class, run both and "
                         "compare the outputs.\n"
                         "This runs code from the file: use it only with trusted files.");
  sub->add_option("MODEL", options->files, "TorchScript files (torch.jit.save)")
      ->required()
      ->check(input_path());
  sub->add_option("--module", options->module,
                  "the C++ or Python class; default: found by class name and keys")
      ->check(listed_choice("a class", known_modules(), "`posenc verify --help`"));
  sub->add_option("--prefix", options->prefix, "select the keys with this prefix, dot included");
  sub->add_option(
         "--param", options->params,
         "set an option: scale=none|sqrt_dim|VALUE, padding_idx, max_len, norm_first=1, ...")
      ->check(assignment())
      ->allow_extra_args(false);
  sub->footer("Names for --module:\n" + module_names() +
              "\nExit status 1 if an output differs or a file is rejected.\n"
              "Example:\n  posenc verify embedding.pt\n"
              "  posenc verify --module TransformerEmbedding a.pt b.pt");
  sub->callback([options, &status] {
    if (options->files.size() > 1) {
      status = verify_several(*options) ? 0 : 1;
      return;
    }
    const Report report = verify(options->files.front(), *options);
    print(options->files.front(), report);
    status = report.good() ? 0 : 1;
  });
}

}  // namespace posenc::cli
