// Blocks of an utterance: queries attend to keys around them.

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/einsum.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/tanh.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "catalogue/relative/rows.h"
#include "posenc/positions/relative/index.h"
#include "posenc/positions/relative/scores.h"
#include "positions/relative/masked.h"

namespace posenc::relative {
namespace {

// Transformer-XL's shift where a table has fewer rows than a block has keys: a row of zeros between
// the rows of a query and those of the next, which ends outside. (B, H, blocks, chunk, R)
at::Tensor shifted_in_blocks(const at::Tensor& x, int64_t context) {
  const int64_t chunk = x.size(3);
  std::vector<int64_t> sizes = x.sizes().vec(), lines(sizes.begin(), sizes.begin() + 3);
  lines.push_back(chunk * (context + 1));
  sizes.back() = context;
  return at::constant_pad_nd(x, {0, context + 1 - x.size(-1)})
      .reshape(lines)
      .slice(-1, 0, chunk * context)
      .reshape(sizes);
}

// Blocks of queries and the keys around them. The table is the sinusoid of the distances,
// projected.
RelativeOutputs gemma3n_audio(const Given& given) {
  const int64_t chunk = given.integer("chunk", 1);
  const int64_t before = std::max<int64_t>(0, given.integer("left") - 1),
                after = given.integer("right");
  const at::Tensor q = given.tensor("q", {kAny, given.integer("blocks", 1), chunk, kAny, kAny});
  const int64_t heads = q.size(3), head_dim = q.size(4), width = heads * head_dim;
  const int64_t context = chunk + before + after;
  const at::Tensor k = given.tensor("k", {q.size(0), q.size(1), context, heads, head_dim});
  const at::Tensor weight = given.tensor("w.pos_proj.weight", {width, width});
  given.require(width % 2 == 0, "`q` must have an even number of channels of all heads",
                std::to_string(width));
  const int64_t scales = width / 2;
  const double step = std::log(1.0e4) / static_cast<double>(std::max<int64_t>(scales - 1, 1));
  const at::Tensor frequencies = at::exp(at::arange(scales, at::kLong) * -step)
                                     .to(q.scalar_type())
                                     .to(at::kFloat);  // a buffer
  const at::Tensor distances = at::arange(before, -after - 1, -1, at::kLong);
  const at::Tensor angles =
      distances.unsqueeze(0).to(at::kFloat).unsqueeze(-1) * frequencies.view({1, 1, -1});
  const at::Tensor table = at::cat({angles.sin(), angles.cos()}, -1).to(q.scalar_type());
  const at::Tensor rows =
      at::linear(table, weight).reshape({-1, heads, head_dim}).permute({1, 2, 0});
  const at::Tensor queries = q.permute({0, 3, 1, 2, 4});
  const at::Tensor content = at::matmul(queries, k.permute({0, 3, 1, 4, 2}));
  at::Tensor term = at::matmul(queries.reshape({q.size(0), heads, -1, head_dim}), rows)
                        .reshape({q.size(0), heads, q.size(1), chunk, -1});
  return {{"scores", content + shifted_in_blocks(term, context)}};
}

// Queries are scaled by a learned number of each channel; scores are capped. All of it in float32.
RelativeOutputs gemma4_audio(const Given& given) {
  const QueriesAndKeys input = queries_and_keys(given);
  given.require(input.queries == input.keys, "`q` and `k` must have the same length",
                std::to_string(input.queries) + " and " + std::to_string(input.keys));
  const int64_t chunk = given.integer("chunk", 1), before = given.integer("left", 1) - 1,
                after = given.integer("right"), context = chunk + before + after;
  const int64_t blocks = (input.queries + chunk - 1) / chunk, heads = input.heads;
  const at::Tensor pe = given.tensor("pe", {1, context / 2 + 1, heads * input.head_dim});
  const at::Tensor weight =
      given.tensor("w.relative_k_proj.weight", {heads * input.head_dim, pe.size(2)});
  const at::Tensor per_channel = given.tensor("w.per_dim_scale", {input.head_dim});
  const double q_scale = std::pow(static_cast<double>(input.head_dim), -0.5) / std::numbers::ln2;
  const double k_scale = std::log(1 + std::numbers::e) / std::numbers::ln2;
  const at::Tensor q = input.q.transpose(1, 2).to(at::kFloat) * q_scale * at::softplus(per_channel);
  const at::Tensor k = input.k.transpose(1, 2).to(at::kFloat) * k_scale;
  const at::Tensor queries = at::constant_pad_nd(q, {0, 0, 0, 0, 0, blocks * chunk - input.queries})
                                 .reshape({input.batch, blocks, chunk, heads, input.head_dim})
                                 .permute({0, 3, 1, 2, 4});
  const at::Tensor keys = at::constant_pad_nd(k, {0, 0, 0, 0, before, after + chunk - 1})
                              .unfold(1, context, chunk)
                              .movedim(-1, 2)
                              .contiguous();
  const at::Tensor content = at::matmul(queries, keys.permute({0, 3, 1, 4, 2}));
  const at::Tensor rows =
      at::linear(pe, weight).view({-1, heads, input.head_dim}).to(at::kFloat).permute({1, 2, 0});
  const at::Tensor term =
      at::matmul(queries.reshape({input.batch, heads, -1, input.head_dim}), rows)
          .reshape({input.batch, heads, blocks, chunk, -1});
  // A buffer of the class, which has the dtype of its parameters.
  const at::Tensor cap = at::scalar_tensor(given.real("softcap"), at::kFloat).to(given.dtype());
  at::Tensor scores = at::tanh((content + shifted_in_blocks(term, context)) / cap) * cap;
  if (given.flag("masked")) {
    const at::Tensor mask = given.added("mask", {input.batch, heads, blocks, chunk, context});
    scores = scores.masked_fill(mask != 0, given.real("fill"));
  }
  return {{"scores", scores}};
}

// The rows (context, context, D) of the distances inside a block, of a table whose middle row is
// that of distance 0.
at::Tensor rows_of_block(const Given& given, int64_t context, int64_t head_dim) {
  const int64_t most = given.integer("max_pos", 1);
  given.require(context <= most, "`context` must be at most `max_pos`", std::to_string(context));
  const at::Tensor table = given.tensor("w.rel_pos_emb.weight", {2 * most + 1, head_dim});
  const at::Tensor positions = at::arange(context, at::kLong);
  return at::embedding(table, relative_index(positions, positions, Clamp{most, most, true}));
}

// Blocks have no other keys. The term of the tokens beyond the last is the lowest number.
RelativeOutputs granite_speech(const Given& given) {
  const int64_t context = given.integer("context", 1), length = given.integer("length", 1);
  const int64_t blocks = (length + context - 1) / context, beyond = length % context;
  const at::Tensor q = given.tensor("q", {kAny, kAny, context, kAny});
  given.require_dtype("q", q);
  given.require(q.size(0) % blocks == 0, "`q` must have all blocks of `length`",
                std::to_string(q.size(0)) + " and " + std::to_string(blocks));
  const at::Tensor of_heads = q.transpose(1, 2).contiguous().transpose(1, 2);
  const double scale = std::pow(static_cast<double>(q.size(3)), -0.5);
  at::Tensor bias =
      at::einsum("bhcd,crd->bhcr", {of_heads, rows_of_block(given, context, q.size(3))}) * scale;
  if (beyond > 0) {
    const at::Tensor inside = at::arange(context, at::kLong) < beyond;
    const at::Tensor last = at::arange(q.size(0), at::kLong).remainder(blocks) == blocks - 1;
    const at::Tensor hidden =
        inside.unsqueeze(1).logical_and(inside).logical_not().logical_and(last.view({-1, 1, 1, 1}));
    bias = bias.masked_fill(hidden, lowest(bias.scalar_type()));
  }
  return {{"bias", bias}};
}

// The rows are scaled, and not the term.
RelativeOutputs granite_speech5(const Given& given) {
  const QueriesAndKeys input = queries_and_keys(given);
  const int64_t context = given.integer("context", 1);
  given.tensor("q", {kAny, kAny, context, kAny});
  given.tensor("k", {kAny, kAny, context, kAny});
  const double scale = std::pow(static_cast<double>(input.head_dim), -0.5);
  const at::Tensor rows = rows_of_block(given, context, input.head_dim) * scale;
  const at::Tensor queries = input.q.permute({2, 0, 1, 3}).reshape({context, -1, input.head_dim});
  at::Tensor term = at::matmul(queries, rows.transpose(1, 2))
                        .view({context, input.batch, input.heads, context})
                        .permute({1, 2, 0, 3})
                        .contiguous();
  if (given.flag("masked")) {
    const at::Tensor mask = given.tensor("mask", {input.batch, context});
    term = masked(term, mask.to(at::kBool).view({-1, 1, 1, context}), fill_lowest());
  }
  return {{"scores", relative_scores(input.q, input.k, term, {}, {})}};
}

PresetRow granite_row(const char* name, const char* source) {
  return {{name,
           source,
           "q.rows * D^-0.5 of each block, as the mask of PyTorch's attention",
           {"context", "max_pos", "length"},
           {"q", "w.rel_pos_emb.weight"},
           {"bias"}},
          granite_speech};
}

}  // namespace

PresetRows block_presets() {
  return {
      {{"gemma3n_audio",
        "transformers 5.23.0 Gemma3nAudioRelativePositionEmbedding",
        "blocks of queries; a sinusoid of distances",
        {"left", "right", "chunk", "blocks"},
        {"q", "k", "w.pos_proj.weight"},
        {"scores"}},
       gemma3n_audio},
      {{"gemma4_audio",
        "transformers 5.23.0 Gemma4AudioAttention.forward",
        "queries scaled by channel; capped; in float32",
        {"left", "right", "chunk", "softcap", "masked", "fill", "dtype"},
        {"q", "k", "pe", "w.relative_k_proj.weight", "w.per_dim_scale", "mask"},
        {"scores"}},
       gemma4_audio},
      granite_row("granite_speech", "transformers 5.23.0 GraniteSpeechConformerAttention.forward"),
      granite_row("granite_speech_plus",
                  "transformers 5.23.0 GraniteSpeechPlusConformerAttention.forward"),
      {{"granite_speech5",
        "transformers 5.23.0 GraniteSpeech5EncoderAttention.forward",
        "q.k * D^-0.5 + q.(rows * D^-0.5); the mask fills the term",
        {"context", "max_pos", "masked"},
        {"q", "k", "w.rel_pos_emb.weight", "mask"},
        {"scores"}},
       granite_speech5},
  };
}

}  // namespace posenc::relative
