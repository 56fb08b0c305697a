#include "cli/generate_sequences.h"

#include <algorithm>

#include "cli/error.h"
#include "cli/weights.h"
#include "models/seq2seq/generation_config.h"

namespace posenc::cli {

at::Tensor ids_in(const StateDict& given, const char* name, int64_t rows) {
  const at::Tensor ids = given[name];
  if (ids.dim() != 2 || ids.scalar_type() != at::kLong)
    fail("`{}` must be int64 (B, L); it is {} {}", name, dtype_text(ids), shape_of(ids));
  if (rows >= 0 && ids.size(0) != rows)
    fail("`{}` must have the {} rows of `input_ids`; it is {}", name, rows, shape_of(ids));
  return ids.contiguous();
}

at::Tensor mask_in(const StateDict& given, const char* name, const at::Tensor& ids,
                   const char* of) {
  if (!given.contains(name)) return at::ones_like(ids);
  const at::Tensor mask = ids_in(given, name, -1);
  if (mask.sizes() != ids.sizes())
    fail("`{}` must have the shape of `{}`, {}; it is {}", name, of, shape_of(ids), shape_of(mask));
  return mask;
}

// The layers would refuse them too, but do not know the tensor's name.
void check_ids(const at::Tensor& ids, const at::Tensor& mask, const char* name, int64_t vocab,
               int64_t most) {
  if (ids.size(1) > most)
    fail("`{}` must have at most the model's {} positions; it is {}", name, most, shape_of(ids));
  const auto* const first = ids.const_data_ptr<int64_t>();
  const auto* const counts = mask.defined() ? mask.const_data_ptr<int64_t>() : nullptr;
  for (int64_t index = 0; index < ids.numel(); ++index) {
    const bool is_token = counts == nullptr || counts[index] != 0;
    if (!is_token || (first[index] >= 0 && first[index] < vocab)) continue;
    fail("`{}` must have ids in [0, {}), the model's vocabulary. Got {} at index [{}, {}]", name,
         vocab, first[index], index / ids.size(1), index % ids.size(1));
  }
}

Tokens row_of(const at::Tensor& ids, int64_t row) {
  const auto* const first = ids.const_data_ptr<int64_t>() + row * ids.size(1);
  return {first, first + ids.size(1)};
}

std::vector<ReturnedRow> returned_rows(const std::vector<std::vector<Hypothesis>>& found,
                                       const GenerateOptions& options) {
  constexpr float kNeverLived = -1e9F;
  const auto width = static_cast<std::size_t>(options.num_return_sequences());
  std::vector<ReturnedRow> rows;
  for (std::size_t prompt = 0; prompt < found.size(); ++prompt) {
    const auto& own = found[prompt];
    for (std::size_t i = 0; i < width; ++i) {
      const Hypothesis& one = own[std::min(i, own.size() - 1)];
      rows.push_back({prompt, &one, i < own.size() ? static_cast<float>(one.score) : kNeverLived});
    }
  }
  return rows;
}

StateDict sequences_of(const std::vector<ReturnedRow>& rows, const std::vector<Tokens>& columns,
                       const GenerateOptions& options, const Settings& settings) {
  const bool beams = options.num_beams() > 1;
  std::vector<Tokens> sequences;
  std::vector<float> scores;
  for (const ReturnedRow& row : rows) {
    sequences.push_back(columns[row.prompt]);
    const Tokens& tokens = row.hypothesis->tokens;
    sequences.back().insert(sequences.back().end(), tokens.begin(), tokens.end());
    scores.push_back(row.score);
  }
  StateDict result;
  result.insert("sequences", padded(sequences, fill_token(settings, beams)));
  if (beams) result.insert("sequences_scores", at::tensor(scores, at::kFloat));
  return result;
}

}  // namespace posenc::cli
