// posenc generate of a decoder-only language model: the continuations of prompts.

#include <ATen/Context.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "cli/error.h"
#include "cli/generate_parts.h"
#include "cli/generate_sequences.h"
#include "cli/weights.h"
#include "posenc/models/decoder.h"
#include "posenc/models/frozen_file.h"

namespace posenc::cli {
namespace {

struct Prompts {
  at::Tensor ids, mask;  // (B, L)
};

Prompts prompts_in(const StateDict& given, const std::string& path) {
  refuse_unknown(given, path, "a decoder-only language model", {"input_ids", "attention_mask"});
  if (!given.contains("input_ids"))
    fail("{} must have a tensor `input_ids`, the ids of tokens (B, L); it contains {}", path,
         described(given));
  const at::Tensor ids = ids_in(given, "input_ids", -1);
  if (ids.numel() == 0) fail("`input_ids` must have tokens; it is {}", shape_of(ids));
  return {ids, mask_in(given, "attention_mask", ids, "input_ids")};
}

// The tokens of each row, without the padding on either side of them.
std::vector<Tokens> tokens_of(const Prompts& prompts) {
  std::vector<Tokens> rows;
  for (int64_t row = 0; row < prompts.ids.size(0); ++row) {
    const Tokens ids = row_of(prompts.ids, row), mask = row_of(prompts.mask, row);
    const auto is_token = [](int64_t one) { return one != 0; };
    const auto first = std::find_if(mask.begin(), mask.end(), is_token);
    const auto last = std::find_if(mask.rbegin(), mask.rend(), is_token).base();
    if (first == mask.end() || !std::all_of(first, last, is_token))
      fail(
          "row {} of `attention_mask` must be nonzero for its tokens, of which there is at least "
          "one, and zero only before and after them",
          row);
    rows.emplace_back(ids.begin() + (first - mask.begin()), ids.begin() + (last - mask.begin()));
  }
  return rows;
}

// The frozen model, or with --plain the module.
struct DecoderModel {
  std::optional<FrozenDecoder> frozen;
  Decoder plain{nullptr};

  const DecoderOptions& options() const { return frozen ? frozen->options() : plain->options; }
};

DecoderModel model_in(const GenerateArguments& arguments) {
  LoadReport report;
  const auto load = LoadOptions(arguments.load).report(&report);
  DecoderModel model;
  if (arguments.plain)
    model.plain = load_decoder(arguments.folder, load);
  else
    model.frozen = load_and_freeze_decoder(arguments.folder, arguments.freezing, load);
  note_unexpected("generate", report);
  return model;
}

int64_t vocab_of(const DecoderModel& model) {
  return model.options().model().embeddings()->vocab_size();
}

// Calls `use` with the model.
template <typename Use>
auto with_model(const DecoderModel& model, const Use& use) {
  return model.frozen ? use(*model.frozen) : use(*model.plain.ptr());
}

StateDict outputs_of(const DecoderModel& model, const Prompts& prompts) {
  const auto out = with_model(model, [&](auto&& any) {
    return any.forward(prompts.ids, DecoderInputs().attention_mask(prompts.mask));
  });
  StateDict result;
  result.insert("logits", out.logits.contiguous());
  result.insert("last_hidden_state", out.last_hidden_state.contiguous());
  return result;
}

StateDict continued(const GenerateArguments& arguments, const DecoderModel& model,
                    const Prompts& prompts, const SettingOverrides& overrides) {
  const Settings settings = decoder_generation_settings(arguments.folder, overrides);
  const GenerateOptions options = generate_options(settings, vocab_of(model), Begin::Prompt);
  if (arguments.seed) at::manual_seed(*arguments.seed);
  std::vector<std::vector<Hypothesis>> found;
  try {
    found =
        with_model(model, [&](auto&& any) { return generate(any, tokens_of(prompts), options); });
  } catch (const c10::ValueError& error) {
    rethrow_labelled(settings, error);
  }
  std::vector<Tokens> columns;
  for (int64_t row = 0; row < prompts.ids.size(0); ++row)
    columns.push_back(row_of(prompts.ids, row));
  return sequences_of(returned_rows(found, options), columns, options, settings);
}

}  // namespace

StateDict continue_prompts(const GenerateArguments& arguments, const StateDict& given,
                           const SettingOverrides& overrides) {
  if (arguments.attention || arguments.coverage_penalty != 0.0)
    fail("{}: --attention and --coverage-penalty are for encoder-decoders", arguments.folder);
  const Prompts prompts = prompts_in(given, arguments.input);
  tokens_of(prompts);  // refuses masks before the model is loaded
  const DecoderModel model = model_in(arguments);
  check_ids(prompts.ids, prompts.mask, "input_ids", vocab_of(model), INT64_MAX);
  return arguments.logits ? outputs_of(model, prompts)
                          : continued(arguments, model, prompts, overrides);
}

}  // namespace posenc::cli
