// posenc run: one forward of the C++ twin, tensors from and to safetensors.

#include <ATen/core/grad_mode.h>

#include <memory>

#include "cli/command.h"
#include "cli/error.h"
#include "cli/twin.h"
#include "posenc/io/safetensors.h"

namespace posenc::cli {
namespace {

struct RunOptions {
  std::string file, module, prefix, input, output;
  std::vector<std::string> params;
};

int64_t offset_of(const at::Tensor& tensor, const std::string& path) {
  const bool whole = tensor.scalar_type() == at::kLong || tensor.scalar_type() == at::kInt;
  if (!whole || tensor.numel() != 1 || tensor.dim() > 1) {
    refuse("{}: `offset` must be one int64 or int32, () or (1). Got {} {}", path, dtype_of(tensor),
           shape_of(tensor));
  }
  return tensor.item<int64_t>();
}

// The arguments of forward; an optional one that the module does not take is refused.
Call call_of(const std::string& path, const Twin& twin) {
  const StateDict tensors = read_tensors(path, "input");
  Call call{tensors["input"], {}, {}, {}};
  for (const std::string name : {"position_ids", "offset", "image"}) {
    if (!tensors.contains(name)) continue;
    bool taken = false;
    for (const auto& known : twin.optional) taken = taken || known == name;
    if (!taken) {
      refuse("{}: this module takes no `{}`{}", path, name,
             twin.optional.empty() ? "" : "; it takes " + listed(twin.optional));
    }
    if (name == "position_ids") call.position_ids = tensors[name];
    if (name == "offset") call.offset = offset_of(tensors[name], path);
    if (name == "image") call.image = tensors[name];
  }
  return call;
}

void run(const RunOptions& options) {
  const at::NoGradGuard no_grad;
  const Twin twin =
      make_twin(read_weights(options.file, options.prefix), options.module, Params(options.params));
  StateDict result;
  result.insert("output", twin.forward(call_of(options.input, twin)));
  save_safetensors(options.output, result);
}

}  // namespace

void add_run(CLI::App& app) {
  auto options = std::make_shared<RunOptions>();
  auto* sub = app.add_subcommand("run", "Run the C++ twin of a module, in eval mode.");
  sub->add_option("FILE", options->file, kReadableFiles)->required();
  sub->add_option("--module", options->module, "the class, C++ or the notebook's (default: found)");
  sub->add_option("--prefix", options->prefix, "the part under this key prefix, dot included");
  sub->add_option(
         "--param", options->params,
         "override an option: scale=none|sqrt_dim|VALUE, batch_first=false, grow=true, ...")
      ->check(CLI::Validator(check_assignment, "key=value"))
      ->allow_extra_args(false);
  sub->add_option("--input", options->input,
                  "safetensors: tensor `input` (ids or positions int64 or int32, or embeddings);"
                  " optional `position_ids`, `offset`, `image`")
      ->required();
  sub->add_option("--out", options->output, "safetensors with tensor `output`, any extension")
      ->required();
  sub->footer(
      "Names for --module:\n" + module_names() +
      "\nExample:\n  posenc run embedding.pt --input ids.safetensors --out out.safetensors\n"
      "  posenc run model.safetensors --prefix encoder.embed. --module InputEmbedding \\\n"
      "    --input ids.safetensors --out out.safetensors");
  sub->callback([options] { run(*options); });
}

}  // namespace posenc::cli
