// posenc run: runs the C++ counterpart's forward once, with safetensors as input and output.

#include <ATen/core/grad_mode.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/error.h"
#include "cli/modules/kinds.h"
#include "cli/modules/module_spec.h"
#include "cli/output.h"
#include "posenc/io/save.h"

namespace posenc::cli {
namespace {

struct RunOptions {
  std::string file, module, prefix, input, output;
  std::vector<std::string> params;
};

// The arguments of forward, by their names here or in Python. A file may also have the `output`
// that Python computed from them.
Call call_of(const std::string& path, const ModuleSpec& spec) {
  const StateDict tensors = read_tensors(path, {});
  std::map<std::string, std::string> names = spec.aliases;
  std::vector<std::string> known = spec.inputs;
  known.insert(known.end(), spec.optional.begin(), spec.optional.end());
  for (const auto& name : known) names[name] = name;
  for (const auto& alias : spec.aliases) known.push_back(alias.first);
  known.emplace_back("output");
  Call call;
  for (const auto& item : tensors) {
    const auto name = names.find(item.key());
    if (name != names.end() && !call.emplace(name->second, item.value()).second) {
      fail("{} must have one tensor for `{}`. Got two", path, name->second);
    }
  }
  for (const auto& name : spec.inputs) {
    if (call.count(name) == 0) {
      fail("{} must have a tensor `{}`; it contains {}", path, name, described(tensors));
    }
  }
  refuse_unknown(tensors, path, "this module", known);
  return call;
}

void run(const RunOptions& options) {
  refuse_to_replace_input(options.output, {options.file, options.input});
  const at::NoGradGuard no_grad;
  const ModuleSpec spec = make_module_spec(read_weights(options.file, options.prefix),
                                           options.module, Params(options.params));
  StateDict result;
  result.insert("output", spec.forward(call_of(options.input, spec)));
  save_tensors(options.output, result);
}

}  // namespace

std::vector<std::string> known_modules() {
  std::set<std::string> names;  // kinds that differ in their keys may share one
  for (const auto& kind : kinds()) names.insert(kind.names.begin(), kind.names.end());
  return {names.begin(), names.end()};
}

void add_run(CLI::App& app) {
  auto options = std::make_shared<RunOptions>();
  auto* sub = app.add_subcommand("run", "Run the C++ class for a file of weights, in eval mode.");
  sub->add_option("FILE", options->file, kReadableFiles)->required()->check(input_path());
  sub->add_option("--module", options->module,
                  "the C++ or Python class; default: found by class name and keys")
      ->check(listed_choice("a class", known_modules(), "`posenc run --help`"));
  sub->add_option("--prefix", options->prefix, "select the keys with this prefix, dot included");
  sub->add_option("--param", options->params,
                  "set an option: scale=none|sqrt_dim|VALUE, batch_first=false, grow=true, "
                  "num_heads=8, norm_first=0, activation=relu|gelu|gelu_tanh|quick_gelu|swish, ...")
      ->check(assignment())
      ->allow_extra_args(false);
  sub->add_option(
         "--input", options->input,
         "safetensors with tensor `input` (int64 or int32 ids or positions, or embeddings) and "
         "optional `position_ids`, `offset`, `image`. For a Transformer `src`, `tgt` and optional "
         "`src_mask`, `tgt_mask`, `src_key_padding_mask`, ...: bool, true may NOT attend, or "
         "floating-point, added to the scores")
      ->required()
      ->check(input_path());
  sub->add_option("--out", options->output,
                  "safetensors file for tensor `output`; torch.save's format for .pt and .pth")
      ->required()
      ->check(output_path());
  sub->footer(
      "Names for --module:\n" + module_names() +
      "\nExample:\n  posenc run embedding.pt --input ids.safetensors --out out.safetensors\n"
      "  posenc run model.safetensors --prefix encoder.embed. --module InputEmbedding \\\n"
      "    --input ids.safetensors --out out.safetensors\n"
      "  posenc run transformer.safetensors --param num_heads=8 --input ids.safetensors \\\n"
      "    --out logits.safetensors");
  sub->callback([options] { run(*options); });
}

}  // namespace posenc::cli
