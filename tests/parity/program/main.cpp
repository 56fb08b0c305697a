// posenc-parity: Python's modules beside their C++ counterparts. `verify` compares the two on the
// same inputs, and `run` runs the C++ one, with safetensors as input and output. `table` is that of
// posenc. Exit status 0 success, 1 failed check or rejected input, 2 usage error.

#include <ATen/core/grad_mode.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <sstream>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/help_format.h"
#include "cli/output.h"
#include "cli/run_app.h"
#include "cli/text_table.h"
#include "parity/program/comparison.h"
#include "posenc/positions/sinusoid/preset.h"
#include "posenc/positions/sinusoid/table.h"
#include "posenc/weights/save.h"

namespace posenc::parity {
namespace {

// Which C++ module to make of a file: --module, --prefix and --param.
struct ModuleOptions {
  std::string module, prefix;
  Names params;
};

// Adds them to a subcommand, whose --help lists the classes before `example`.
void add_options(CLI::App& sub, ModuleOptions& options, const std::string& help_of_params,
                 const std::string& example) {
  const std::string help = "`posenc-parity " + sub.get_name() + " --help`";
  sub.add_option("--module", options.module,
                 "the C++ or Python class; default: found by class name and keys")
      ->check(cli::listed_choice("a class", known_modules(), help));
  sub.add_option("--prefix", options.prefix, "select the keys with this prefix, dot included");
  sub.add_option("--param", options.params, help_of_params)
      ->check(cli::assignment())
      ->allow_extra_args(false);
  sub.footer("Names for --module:\n" + module_names() + example);
}

struct VerifyOptions : ModuleOptions {
  Names files;
};

struct Report {
  std::string script_class, module, keys, key_count, table, hint;
  std::vector<Outcome> outcomes;
  std::size_t good = 0;  // of the outcomes
  Outcome worst;         // of all
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
  return listed(equal) +
         (count > kShownPresets ? fmt::format(" and {} more", count - kShownPresets) : "");
}

std::string shown_keys(Names names) {
  for (auto& name : names) name = shown(name);
  return listed(names, kShownKeys);
}

Report verify(const std::string& path, const VerifyOptions& options) {
  const at::NoGradGuard no_grad;
  Weights weights = read_weights(path, options.prefix);
  if (weights.format != WeightsFormat::TorchScript) {
    fail("{} contains only weights: there is no script to compare with", path);
  }
  const Script script(path, options.prefix);
  weights.class_name = script.class_name();
  const Counterpart made = make_counterpart(weights, options.module, options.params);
  std::ostringstream printed;
  made.module->pretty_print(printed);
  Report report;
  report.script_class = shown(weights.class_name);
  report.module = printed.str();
  report.keys = shown_keys(made.loaded);
  if (!made.ignored.empty()) {
    report.keys += "; buffers that the C++ class lacks: " + shown_keys(made.ignored);
  }
  report.key_count = fmt::format("{}/{}", made.loaded.size(), weights.tensors.size());
  if (const auto table = made.table(); table.defined()) report.table = presets_of(table);
  report.outcomes = outcomes_of(script, made);
  for (const Outcome& outcome : report.outcomes) {
    report.good += outcome.good ? 1 : 0;
    report.worst.difference = worst(report.worst.difference, outcome.difference);
    if (!outcome.failure.empty()) report.worst.failure = outcome.failure;
  }
  report.worst.good = report.good == report.outcomes.size() && report.good > 0;
  if (!report.worst.good) {
    report.hint = option_hint(script, weights, options.module, options.params);
  }
  return report;
}

void add_cells(const Outcome& outcome, std::vector<std::string>& row) {
  const bool compared = outcome.failure.empty();
  row.push_back(compared ? short_number(outcome.difference.max_abs) : "-");
  row.push_back(compared ? short_number(outcome.difference.max_ulp) : "-");
  row.push_back(outcome.difference.equal && compared ? "yes" : outcome.good ? "near" : "NO");
}

bool verify_one(const VerifyOptions& options) {
  const std::string& path = options.files.front();
  const Report report = verify(path, options);
  fmt::print("{}\n  class  {}\n  C++    {}\n  keys   {}: {}\n", path, report.script_class,
             report.module, report.key_count, report.keys);
  if (!report.table.empty()) fmt::print("  table  equals {}\n", report.table);
  std::vector<std::vector<std::string>> rows = {{"input", "shape", "max abs", "max ulp", "equal"}};
  for (const auto& outcome : report.outcomes) {
    rows.push_back({outcome.name, outcome.shape});
    add_cells(outcome, rows.back());
  }
  fmt::print("\n{}\n", cli::text_table(rows, 2));
  for (const auto& outcome : report.outcomes) {
    if (outcome.failure.empty()) continue;
    fmt::print("  {}: {}\n", outcome.name, cli::for_terminal(outcome.failure));
  }
  if (!report.hint.empty()) fmt::print("  hint: {}\n", report.hint);
  const bool good = report.worst.good;
  fmt::print("{}: {} of {} inputs{}\n", good ? "equal" : "NOT equal", report.good,
             report.outcomes.size(),
             !good                           ? ""
             : report.worst.difference.equal ? ", bit for bit"
                                             : ", up to rounding");
  return good;
}

bool verify_several(const VerifyOptions& options) {
  std::vector<std::vector<std::string>> rows = {
      {"file", "C++ class", "keys", "table equals", "inputs", "max abs", "max ulp", "equal"}};
  std::size_t good = 0;
  for (const auto& path : options.files) {
    rows.push_back({std::filesystem::path(path).stem().string()});
    auto& row = rows.back();
    try {
      const Report report = verify(path, options);
      const auto module = report.module.substr(0, report.module.find('('));
      row.insert(row.end(), {module.substr(module.rfind(':') + 1), report.key_count,
                             report.table.empty() ? "-" : report.table,
                             fmt::format("{}/{}", report.good, report.outcomes.size())});
      add_cells(report.worst, row);
      if (!report.hint.empty()) cli::print_error("{}: {}\n", path, report.hint);
      good += report.worst.good ? 1 : 0;
    } catch (const std::exception& error) {
      cli::print_error("posenc-parity verify: {}\n", cli::for_terminal(message_of(error)));
      row.insert(row.end(), {"rejected", "-", "-", "-", "-", "-", "NO"});
    }
  }
  fmt::print("{}\n{} of {} files equal\n", cli::text_table(rows), good, options.files.size());
  return good == options.files.size();
}

void add_verify(CLI::App& app, int& status) {
  auto options = std::make_shared<VerifyOptions>();
  auto* sub =
      app.add_subcommand("verify",
                         "Load TorchScript weights into the corresponding C++ class, run both and "
                         "compare the outputs.\n"
                         "This runs code from the file: use it only with trusted files.");
  sub->add_option("MODEL", options->files, "TorchScript files (torch.jit.save)")
      ->required()
      ->check(cli::input_path());
  add_options(*sub, *options,
              "set an option: scale=none|sqrt_dim|VALUE, padding_idx, max_len, norm_first=1, ...",
              "\nExit status 1 if an output differs or a file is rejected.\n"
              "Example:\n  posenc-parity verify embedding.pt\n"
              "  posenc-parity verify --module TransformerEmbedding a.pt b.pt");
  sub->callback([options, &status] {
    status = (options->files.size() > 1 ? verify_several(*options) : verify_one(*options)) ? 0 : 1;
  });
}

struct RunOptions : ModuleOptions {
  std::string file, input, output;
};

// The arguments of forward, by their names here or in Python. A file may also have the `output`
// that Python computed from them.
Call call_of(const std::string& path, const Kind& kind) {
  const StateDict tensors = cli::read_tensors(path, {});
  Names known = kind.inputs;
  known.insert(known.end(), kind.optional.begin(), kind.optional.end());
  std::map<std::string, std::string> names = kind.aliases;
  for (const auto& name : known) names[name] = name;
  for (const auto& alias : kind.aliases) known.push_back(alias.first);
  known.emplace_back("output");
  Call call;
  for (const auto& item : tensors) {
    const auto name = names.find(item.key());
    if (name != names.end() && !call.emplace(name->second, item.value()).second) {
      fail("{} must have one tensor for `{}`. Got two", path, name->second);
    }
  }
  for (const auto& name : kind.inputs) {
    if (call.count(name) == 0) {
      fail("{} must have a tensor `{}`; it contains {}", path, name, described(tensors));
    }
  }
  cli::refuse_unknown(tensors, path, "this module", known);
  return call;
}

void run(const RunOptions& options) {
  cli::check_output(options.output, {options.file, options.input});
  const at::NoGradGuard no_grad;
  const Weights weights = read_weights(options.file, options.prefix);
  const Counterpart made = make_counterpart(weights, options.module, options.params);
  StateDict result;
  result.insert("output", made.forward(call_of(options.input, made.kind)));
  save_tensors(options.output, result);
}

void add_run(CLI::App& app) {
  auto options = std::make_shared<RunOptions>();
  auto* sub = app.add_subcommand("run", "Run the C++ class for a file of weights, in eval mode.");
  sub->add_option("FILE", options->file, cli::kReadableFiles)->required()->check(cli::input_path());
  add_options(
      *sub, *options,
      "set an option: scale=none|sqrt_dim|VALUE, batch_first=false, grow=true, num_heads=8, "
      "norm_first=0, activation=relu|gelu|gelu_tanh|quick_gelu|swish|tanh, ...",
      "\nExample:\n"
      "  posenc-parity run embedding.pt --input ids.safetensors --out out.safetensors\n"
      "  posenc-parity run model.safetensors --prefix encoder.embed. --module InputEmbedding \\\n"
      "    --input ids.safetensors --out out.safetensors\n"
      "  posenc-parity run transformer.safetensors --param num_heads=8 --input ids.safetensors \\\n"
      "    --out logits.safetensors");
  sub->add_option(
         "--input", options->input,
         "safetensors with tensor `input` (int64 or int32 ids or positions, or embeddings) and "
         "optional `position_ids`, `offset`, `image`. For a Transformer `src`, `tgt` and optional "
         "`src_mask`, `tgt_mask`, `src_key_padding_mask`, ...: bool, true may NOT attend, or "
         "floating-point, added to the scores")
      ->required()
      ->check(cli::input_path());
  sub->add_option("--out", options->output,
                  "safetensors file for tensor `output`; torch.save's format for .pt and .pth")
      ->required()
      ->check(cli::output_path());
  sub->callback([options] { run(*options); });
}

}  // namespace
}  // namespace posenc::parity

int main(int argc, char** argv) {
  CLI::App app("Compare PyTorch's modules with their C++ counterparts, and run the latter.",
               "posenc-parity");
  app.require_subcommand(1);
  app.formatter(std::make_shared<posenc::cli::HelpFormat>());
  int status = 0;
  posenc::parity::add_verify(app, status);
  posenc::parity::add_run(app);
  for (const posenc::cli::Command* const command : posenc::cli::commands()) command->add(app);
  const int failure = posenc::cli::run_app(app, argc, argv);
  return failure != 0 ? failure : status;
}
