#include "posenc/models/frozen_classifier.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/layer_norm.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <ostream>

#include "core/torch_internals/parallel_for.h"
#include "inference/freeze/model.h"
#include "inference/linear/largest_rows.h"
#include "inference/rows/frozen_scope.h"
#include "models/frozen/freeze_encoder.h"
#include "models/heads/rows.h"
#include "models/options/values.h"
#include "posenc/models/functional/pooling.h"

namespace posenc {
namespace inference {

struct FrozenClassifierParts {
  ClassifierOptions options;
  EncoderHeadOptions head;  // those of the head itself, which may have been set later
  FrozenEncoder encoder;
  StaleCheck stale_check;  // of all but the encoder
  torch_internals::CallOptions call = {};
  std::optional<Projection> dense = {}, dense2 = {};
  std::optional<double> norm_eps = {};  // without a norm, none
  at::Tensor norm_weight = {}, norm_bias = {};
  Projection out = {};
  std::optional<Projection> beside = {};  // of the columns after those of `out`
  FrozenSource source = {};
};

/// Wraps and unwraps the implementation.
struct FrozenClassifierAccess {
  static FrozenClassifier wrap(FrozenClassifierParts parts) {
    return FrozenClassifier(std::make_shared<const FrozenClassifierParts>(std::move(parts)));
  }
  static const FrozenClassifierParts& parts(const FrozenClassifier& frozen) {
    return *frozen.parts_;
  }
};

const FrozenSource& source_of(const FrozenClassifier& frozen) {
  return FrozenClassifierAccess::parts(frozen).source;
}
const StaleCheck& check_of(const FrozenClassifier& frozen) {
  return FrozenClassifierAccess::parts(frozen).stale_check;
}

namespace {

// ATen computes this number of elements by one thread, whose vectors then begin at the same places
// whatever the number of threads.
constexpr int64_t kSerialElements = 1 << 15;

// What the output layer gives, whose weight may be in two parts.
at::Tensor output_of(const FrozenClassifierParts& parts, const at::Tensor& rows) {
  const Activation activation = parts.head.output_activation();
  if (!parts.beside) return functional::activate(parts.out.rows(rows), activation);
  const auto part = [&](const Projection& projection, int64_t begin) {
    at::Tensor out = at::empty({rows.size(0), projection.out()}, at::kFloat);
    projection.run(rows.const_data_ptr<float>() + begin, rows.size(1), rows.size(0),
                   out.data_ptr<float>(), projection.out(), row_regime(rows.size(0)));
    return out;
  };
  return functional::activate(part(parts.out, 0).add_(part(*parts.beside, parts.out.in())),
                              activation);
}

// activation(x), normalised if it is the last, in place.
void finish_dense(const FrozenClassifierParts& parts, const at::Tensor& x, bool is_last) {
  const int64_t rows = x.size(0), width = x.size(1);
  const int64_t part = std::max<int64_t>(1, kSerialElements / width);
  const auto work = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const at::Tensor view = x.narrow(0, i * part, std::min(part, rows - i * part));
      at::Tensor y = functional::activate(view, parts.head.activation());
      if (is_last && parts.norm_eps)
        y = at::layer_norm(y, {width}, parts.norm_weight, parts.norm_bias, *parts.norm_eps);
      view.copy_(y);
    }
  };
  torch_internals::parallel_for(0, (rows + part - 1) / part, 1, work);
}

// What the output layer is given.
at::Tensor output_rows(const FrozenClassifierParts& parts, const at::Tensor& rows) {
  const at::Tensor given = rows.contiguous();
  if (!parts.dense && !parts.norm_eps && parts.head.activation() == Activation::Identity)
    return given;
  at::Tensor x = parts.dense ? parts.dense->rows(given) : given.clone();
  finish_dense(parts, x, !parts.dense2);
  if (parts.dense2) {
    x = parts.dense2->rows(x);
    finish_dense(parts, x, true);
  }
  return x;
}

at::Tensor logits_of(const FrozenClassifierParts& parts, const at::Tensor& rows) {
  return output_of(parts, output_rows(parts, rows));
}

// The logits (B, L, outputs) of all tokens that are not masked.
at::Tensor token_logits(const FrozenClassifierParts& parts, const at::Tensor& hidden,
                        const at::Tensor& attention_mask) {
  const Packing packing = attention_mask.defined() ? Packing(attention_mask.ne(0).cpu())
                                                   : Packing(hidden.size(0), hidden.size(1));
  return packing.unpack(
      logits_of(parts, packing.packed ? packing.pack(hidden) : hidden.flatten(0, 1)));
}

at::Tensor all_logits(const FrozenClassifierParts& parts, const EncoderOutput& out,
                      const at::Tensor& attention_mask) {
  const auto& options = parts.head;
  const at::Tensor& hidden = out.last_hidden_state;
  if (options.rows() == head::Rows::Tokens) return token_logits(parts, hidden, attention_mask);
  if (options.rows() == head::Rows::MeanOfLogits) {
    return functional::mean_pool(token_logits(parts, hidden, attention_mask), attention_mask);
  }
  return logits_of(parts, head_rows(options, out, attention_mask));
}

}  // namespace
}  // namespace inference

ClassifierOutput FrozenClassifier::forward(const torch::Tensor& input,
                                           const EncoderInputs& inputs) const {
  const inference::FrozenScope scope;
  const auto held = parts_;  // keeps it alive: another may be assigned to the handle meanwhile
  held->stale_check.check();
  ClassifierOutput out;
  out.encoder = held->encoder.forward(input, inputs);
  const torch_internals::CallThreads threads(held->call);
  out.logits = inference::all_logits(*held, out.encoder, inputs.attention_mask());
  return out;
}

namespace {

void check_rows(int64_t width, const at::Tensor& rows) {
  TORCH_CHECK_VALUE(rows.dim() == 2 && rows.size(1) == width,
                    "[FrozenClassifier] rows must be (N, ", width, "). Got ", rows.sizes());
  TORCH_CHECK_TYPE(rows.scalar_type() == at::kFloat,
                   "[FrozenClassifier] rows must be float32. Got ", rows.scalar_type());
}

}  // namespace

torch::Tensor FrozenClassifier::logits(const torch::Tensor& rows) const {
  const inference::FrozenScope scope;
  const auto held = parts_;
  check_rows(held->head.d_model(), rows);
  held->stale_check.check();
  const torch_internals::CallThreads threads(held->call);
  return inference::logits_of(*held, rows);
}

torch::Tensor FrozenClassifier::largest_logits(const torch::Tensor& rows,
                                               const std::vector<int64_t>& lengths) const {
  const inference::FrozenScope scope;
  const auto held = parts_;
  check_rows(held->head.d_model(), rows);
  const bool fits = std::all_of(lengths.begin(), lengths.end(), [](int64_t n) { return n >= 0; }) &&
                    std::accumulate(lengths.begin(), lengths.end(), int64_t{0}) == rows.size(0);
  TORCH_CHECK_VALUE(fits, "[FrozenClassifier] lengths must add up to the number of rows, ",
                    rows.size(0), ". Got ", lengths);
  TORCH_CHECK_VALUE(held->head.output_activation() == Activation::Identity,
                    "[FrozenClassifier] largest_logits() must be called for a head whose logits "
                    "go through no activation. Got one with an output_activation");
  held->stale_check.check();
  const torch_internals::CallThreads threads(held->call);
  std::vector<inference::ProductOfColumns> products = {{&held->out, 0}};
  if (held->beside) products.push_back({&*held->beside, held->out.in()});
  return inference::largest_rows(products, inference::output_rows(*held, rows), lengths);
}

const FrozenEncoder& FrozenClassifier::encoder() const { return parts_->encoder; }
const ClassifierOptions& FrozenClassifier::options() const { return parts_->options; }
FrozenBytes FrozenClassifier::bytes() const {
  const FrozenBytes encoder = parts_->encoder.bytes(), head = parts_->stale_check.bytes();
  return {encoder.shared + head.shared, encoder.own + head.own};
}

FrozenClassifier inference::freeze_by(const ClassifierImpl& model, WeightConverter& convert) {
  const FrozenScope scope;
  const EncoderHeadImpl& head = *model.head;
  // A head is small, unless it is the encoder's table.
  const at::Tensor weight = head.options.tied() ? model.table() : head.weight;
  TORCH_CHECK_VALUE(weight.defined(), "[freeze] head: tied must be ",
                    head.options.tied() ? "that of the Classifier's options, false. Got true"
                                        : "true for a head without a weight. Got false");
  FrozenClassifierParts parts = {
      model.options, head.options, freeze_part(*model.encoder, convert, weight),
      StaleCheck(model, copy_of_model_options, model.encoder.ptr().get())};
  if (head.dense) parts.dense = convert.float_projection(head.dense->weight, head.dense->bias);
  if (head.dense2) parts.dense2 = convert.float_projection(head.dense2->weight, head.dense2->bias);
  if (head.norm) {
    parts.norm_eps = head.norm->options.eps();
    parts.norm_weight = head.norm->weight.detach();
    if (head.norm->bias.defined()) parts.norm_bias = head.norm->bias.detach();
  }
  parts.out = convert.has_converted(weight) ? convert.projection(weight, head.bias)
                                            : convert.float_projection(weight, head.bias);
  if (head.weight_beside_table.defined())
    parts.beside = convert.float_projection(head.weight_beside_table, {});
  parts.call = convert.call_options();
  convert.check_exceptions();
  finish(parts.stale_check, convert);
  parts.source = {convert.options(), convert.arrays()};
  return FrozenClassifierAccess::wrap(std::move(parts));
}

FrozenClassifier freeze(const ClassifierImpl& model, const FreezeOptions& options) {
  inference::WeightConverter convert(options, model);
  return inference::freeze_by(model, convert);
}

FrozenClassifier freeze(const Classifier& model, const FreezeOptions& options) {
  TORCH_CHECK_VALUE(!model.is_empty(), "[freeze] the model must not be an empty holder");
  return freeze(*model.ptr(), options);
}

FrozenClassifier freeze(Classifier&& model, const FreezeOptions& options) {
  return inference::freeze_and_release(model, options);
}

std::ostream& operator<<(std::ostream& stream, const FrozenClassifier& model) {
  return stream << "posenc::FrozenClassifier(outputs=" << model.options().head().outputs()
                << ", encoder=" << model.encoder() << ")";
}

}  // namespace posenc
