// posenc generate of an encoder-decoder: targets.

#include <ATen/Context.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "cli/error.h"
#include "cli/generate_parts.h"
#include "cli/generate_sequences.h"
#include "cli/weights.h"
#include "models/frozen/frozen_folder.h"
#include "models/seq2seq/load.h"
#include "posenc/inference/freeze.h"

namespace posenc::cli {
namespace {

// Sources, and the tokens that begin their targets.
struct GenerateInputs {
  at::Tensor src, src_mask;
  at::Tensor prefix, prefix_mask;  // (B, P) as given; undefined if they are not
};

GenerateInputs inputs_in(const StateDict& given, const std::string& path) {
  refuse_unknown(given, path, "an encoder-decoder",
                 {"input_ids", "attention_mask", "decoder_input_ids", "decoder_attention_mask"});
  if (!given.contains("input_ids"))
    fail("{} must have a tensor `input_ids`, the ids of tokens (B, S); it contains {}", path,
         described(given));
  GenerateInputs inputs;
  inputs.src = ids_in(given, "input_ids", -1);
  inputs.src_mask = mask_in(given, "attention_mask", inputs.src, "input_ids");
  if (!given.contains("decoder_input_ids")) {
    if (given.contains("decoder_attention_mask"))
      fail("{}: `decoder_attention_mask` needs `decoder_input_ids`", path);
    return inputs;
  }
  inputs.prefix = ids_in(given, "decoder_input_ids", inputs.src.size(0));
  if (inputs.prefix.size(1) == 0)
    fail("`decoder_input_ids` must have at least one column; it is {}", shape_of(inputs.prefix));
  inputs.prefix_mask = mask_in(given, "decoder_attention_mask", inputs.prefix, "decoder_input_ids");
  return inputs;
}

// The number of columns before the first that counts, for each row of the prefix.
std::vector<int64_t> padding_of(const at::Tensor& mask) {
  std::vector<int64_t> padding;
  for (int64_t row = 0; row < mask.size(0); ++row) {
    const auto* const of_row = mask.const_data_ptr<int64_t>() + row * mask.size(1);
    const auto* const end = of_row + mask.size(1);
    const auto* const first = std::find_if(of_row, end, [](int64_t x) { return x != 0; });
    if (first == end || std::find(first, end, 0) != end)
      fail(
          "row {} of `decoder_attention_mask` must be zeros and then ones, at least one of them: "
          "prefixes are padded on the left",
          row);
    padding.push_back(first - of_row);
  }
  return padding;
}

// The token that begins the target of a row.
int64_t start_of(const GenerateOptions& options, int64_t row) {
  const auto& own = options.prefixes();
  return own.empty() ? options.bos_id() : own.at(static_cast<std::size_t>(row)).front();
}

// The columns that begin each target. As transformers, which puts the start token before those
// that are given unless any row begins with it.
std::vector<Tokens> columns_of(const GenerateInputs& inputs, const GenerateOptions& options) {
  const int64_t rows = inputs.src.size(0);
  if (options.prefixes().size() > 1 && static_cast<int64_t>(options.prefixes().size()) != rows)
    fail("decoder_start_token_id must be one token, or one for each of the {} rows. Got {}", rows,
         options.prefixes().size());
  std::vector<Tokens> columns;
  bool has_start = false;
  for (int64_t row = 0; row < rows; ++row) {
    columns.push_back(inputs.prefix.defined() ? row_of(inputs.prefix, row) : Tokens());
    has_start |= !columns.back().empty() && columns.back().front() == start_of(options, row);
  }
  if (!has_start)
    for (int64_t row = 0; row < rows; ++row)
      columns[row].insert(columns[row].begin(), start_of(options, row));
  return columns;
}

// The columns that count: transformers masks the padding of those that are given, but not a start
// token before it.
std::vector<Tokens> without_padding(const std::vector<Tokens>& columns,
                                    const GenerateInputs& inputs) {
  if (!inputs.prefix.defined()) return columns;
  const auto padding = padding_of(inputs.prefix_mask);
  std::vector<Tokens> kept = columns;
  for (std::size_t row = 0; row < kept.size(); ++row) {
    const auto given = kept[row].end() - inputs.prefix.size(1);
    kept[row].erase(given, given + padding[row]);
  }
  return kept;
}

// Of the columns that without_padding() leaves out, those that hold the start token: the target has
// begun there, so that models which number tokens by their ids count them, as transformers does.
std::vector<int64_t> hidden_columns(const GenerateInputs& inputs, const GenerateOptions& options) {
  if (!inputs.prefix.defined()) return {};
  std::vector<int64_t> hidden = padding_of(inputs.prefix_mask);
  for (std::size_t row = 0; row < hidden.size(); ++row) {
    const auto number = static_cast<int64_t>(row);
    const Tokens given = row_of(inputs.prefix, number);
    hidden[row] = std::count(given.begin(), given.begin() + hidden[row], start_of(options, number));
  }
  return hidden;
}

// The frozen model, or with --plain the modules.
struct GenerateModel {
  std::optional<FrozenTransformer> frozen;
  Transformer plain{nullptr};
  Settings config;

  const TransformerOptions& options() const { return frozen ? frozen->options() : plain->options; }
};

GenerateModel model_in(const GenerateArguments& arguments) {
  LoadReport report;
  const auto load = LoadOptions(arguments.load).report(&report);
  const auto noted = [&](GenerateModel model) {
    note_unexpected("generate", report);
    return model;
  };
  if (arguments.plain) {
    Seq2SeqWeights loaded = load_seq2seq_weights(arguments.folder, load);
    return noted({std::nullopt, std::move(loaded.model), std::move(loaded.config)});
  }
  FrozenSeq2Seq loaded = load_and_freeze_seq2seq(arguments.folder, arguments.freezing, load);
  return noted({std::move(loaded.model), Transformer(nullptr), std::move(loaded.config)});
}

// Calls `use` with the model and the mask of the source.
template <typename Use>
auto with_model(GenerateModel& model, const GenerateInputs& inputs, const Use& use) {
  const auto mask = AttentionMask::key_padding(inputs.src_mask.ne(0));
  return model.frozen ? use(*model.frozen, mask) : use(*model.plain.ptr(), mask);
}

// (B * R, T, S): what the token in each column attends to in the source. Zeros for the columns that
// began the target, and after its end.
at::Tensor attention_of(const std::vector<ReturnedRow>& rows, const std::vector<Tokens>& columns,
                        int64_t length) {
  const int64_t source_length = rows.front().hypothesis->attention.size(1);
  const auto all =
      at::zeros({static_cast<int64_t>(rows.size()), length, source_length}, at::kFloat);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const at::Tensor& own = rows[row].hypothesis->attention;
    const auto before = static_cast<int64_t>(columns[rows[row].prompt].size());
    all[static_cast<int64_t>(row)].narrow(0, before, own.size(0)).copy_(own);
  }
  return all;
}

StateDict generated(const GenerateArguments& arguments, GenerateModel& model,
                    const GenerateInputs& inputs, const SettingOverrides& overrides) {
  const Settings settings = generation_settings(arguments.folder, model.config, overrides);
  GenerateOptions options = generate_options(settings, model.options().tgt_vocab());
  const auto columns = columns_of(inputs, options);
  options.hidden_columns(hidden_columns(inputs, options));
  options.prefixes(without_padding(columns, inputs));
  // transformers counts the columns of padding.
  const auto padding = static_cast<int64_t>(longest(columns) - longest(options.prefixes()));
  if (options.max_length()) options.max_length(*options.max_length() - padding);
  options.min_length(options.min_length() - padding);
  options.coverage_penalty(arguments.coverage_penalty).return_attention(arguments.attention);
  check_search(settings, options, inputs.src, model.options());
  if (arguments.seed) at::manual_seed(*arguments.seed);
  const auto found = with_model(model, inputs, [&](auto&& any, const AttentionMask& mask) {
    return generate(any, inputs.src, mask, options);
  });

  const auto rows = returned_rows(found, options);
  StateDict result = sequences_of(rows, columns, options, settings);
  if (arguments.attention)
    result.insert("attention", attention_of(rows, columns, result["sequences"].size(1)));
  return result;
}

// Teacher-forced: position t has the logits of the token after it.
StateDict forced_logits(const GenerateArguments& arguments, GenerateModel& model,
                        const GenerateInputs& inputs) {
  if (!inputs.prefix.defined()) fail("--logits needs `decoder_input_ids` in {}", arguments.input);
  auto mask = AttentionMask::causal();
  if (!inputs.prefix_mask.all().item<bool>())
    mask = mask & AttentionMask::key_padding(inputs.prefix_mask.ne(0));
  StateDict result;
  result.insert("logits", with_model(model, inputs, [&](auto&& any, const AttentionMask& of_src) {
                  const auto memory = any.encode(inputs.src, of_src);
                  return any.decode(inputs.prefix, memory, mask, of_src).contiguous();
                }));
  return result;
}

}  // namespace

StateDict generate_targets(const GenerateArguments& arguments, const StateDict& given,
                           const SettingOverrides& overrides) {
  const GenerateInputs inputs = inputs_in(given, arguments.input);
  GenerateModel model = model_in(arguments);
  const auto& sizes = model.options();
  if (sizes.src_features())
    fail("{} is a model of speech, whose sources are no tokens: posenc transcribe",
         arguments.folder);
  check_ids(inputs.src, {}, "input_ids", sizes.src_vocab(), sizes.most_tokens());
  if (inputs.prefix.defined())
    check_ids(inputs.prefix, {}, "decoder_input_ids", sizes.tgt_vocab(), sizes.most_tokens());
  return arguments.logits ? forced_logits(arguments, model, inputs)
                          : generated(arguments, model, inputs, overrides);
}

}  // namespace posenc::cli
