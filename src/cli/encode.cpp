// posenc encode: runs the encoder in a folder, with safetensors as input and output.

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <memory>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/error.h"
#include "cli/output.h"
#include "cli/weights.h"
#include "posenc/inference/frozen_encoder_model.h"
#include "posenc/io/safetensors.h"
#include "posenc/models/encoder.h"

namespace posenc::cli {
namespace {

struct EncodeArguments {
  std::string folder, input, output;
};

const std::vector<std::string> kInputsOfEncode = {"input_ids",      "pixel_values",
                                                  "attention_mask", "position_ids",
                                                  "token_type_ids", "task_type_ids"};

// The ids or the pixels. A tensor that is not known could be a misspelt mask, so it is an error.
at::Tensor encoder_input(const StateDict& given, bool is_text, const std::string& path) {
  for (const auto& item : given) {
    const std::string& name = item.key();
    if (std::count(kInputsOfEncode.begin(), kInputsOfEncode.end(), name) == 0) {
      fail("{} must have only tensors that an encoder takes; there is no `{}`{}", path, shown(name),
           suggestion(name, kInputsOfEncode));
    }
  }
  const std::string wanted = is_text ? "input_ids" : "pixel_values";
  const std::string other = is_text ? "pixel_values" : "input_ids";
  if (given.contains(other)) {
    fail("{}: an encoder of {} takes no `{}`, but `{}`", path, is_text ? "token ids" : "images",
         other, wanted);
  }
  if (!given.contains(wanted)) {
    fail("{} must have a tensor `{}`; it contains {}", path, wanted, described(given));
  }
  return given[wanted];
}

void encode(const EncodeArguments& arguments) {
  refuse_to_replace_input(arguments.output, {arguments.folder, arguments.input});
  const at::NoGradGuard no_grad;
  const StateDict given = read_tensors(arguments.input, {});
  const auto tensor = [&](const char* name) {
    return given.contains(name) ? given[name] : at::Tensor();
  };
  const FrozenEncoderModel model = freeze(load_encoder(arguments.folder));
  const bool is_text = model.options().embeddings().has_value();
  const EncoderOutput out = model.forward(encoder_input(given, is_text, arguments.input),
                                          EncoderInputs()
                                              .attention_mask(tensor("attention_mask"))
                                              .token_type_ids(tensor("token_type_ids"))
                                              .position_ids(tensor("position_ids"))
                                              .task_type_ids(tensor("task_type_ids")));
  StateDict result;
  result.insert("embeddings", out.embeddings.contiguous());
  result.insert("last_hidden_state", out.last_hidden_state.contiguous());
  if (out.pooled.defined()) result.insert("pooled", out.pooled.contiguous());
  save_safetensors(arguments.output, result);
}

}  // namespace

void add_encode(CLI::App& app) {
  auto arguments = std::make_shared<EncodeArguments>();
  auto* sub = app.add_subcommand(
      "encode", "Run an encoder of Hugging Face's transformers: BERT, RoBERTa, ALBERT, ViT, ...");
  sub->add_option("MODEL_DIR", arguments->folder,
                  "folder with config.json and the weights, as save_pretrained() writes it")
      ->required()
      ->check(input_path());
  sub->add_option(
         "--in", arguments->input,
         "safetensors with `input_ids` (B, L) and optionally `attention_mask`, nonzero for "
         "tokens, `token_type_ids`, `position_ids` and `task_type_ids`; or `pixel_values` "
         "(B, C, H, W)")
      ->required()
      ->check(input_path());
  sub->add_option("--out", arguments->output,
                  "safetensors for `embeddings`, the input of the first layer, "
                  "`last_hidden_state`, whose rows of masked tokens are zero, and `pooled`, if the "
                  "model has a pooler; any extension")
      ->required()
      ->check(output_path());
  sub->footer("Models:\n" + listed(encoder_model_types()) +
              "\nExample:\n  posenc encode bert-base-uncased --in ids.safetensors --out "
              "vectors.safetensors");
  sub->callback([arguments] { encode(*arguments); });
}

}  // namespace posenc::cli
