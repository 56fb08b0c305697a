#include "posenc/models/classifier.h"

#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>

#include <ostream>

#include "core/print_fields.h"
#include "models/encoder/parts.h"

namespace posenc {
namespace {

void check_classifier(const ClassifierOptions& options) {
  const auto& head = options.head();
  const bool pools = options.encoder().pooling() != encoder::Pooling::None;
  TORCH_CHECK_VALUE(head.rows() != head::Rows::Pooled || pools,
                    "[Classifier] the encoder must have a pooled output for rows(Pooled). Got "
                    "Pooling::None");
  int64_t width = output_width(options.encoder());
  if (head.rows() == head::Rows::Pooled) width = options.encoder().pooler_dim().value_or(width);
  if (head.rows() == head::Rows::FirstAndMean) width *= 2;
  TORCH_CHECK_VALUE(head.d_model() == width,
                    "[Classifier] d_model of the head must be that of the encoder's output, ",
                    width, ". Got ", head.d_model());
  TORCH_CHECK_VALUE(!head.tied() || options.encoder().embeddings(),
                    "[Classifier] a tied head must have an encoder of token ids");
  const auto labels = static_cast<int64_t>(options.labels().size());
  TORCH_CHECK_VALUE(labels == 0 || labels == head.outputs(),
                    "[Classifier] labels must be as many as the head's outputs, ", head.outputs(),
                    ", or none. Got ", labels);
}

}  // namespace

ClassifierImpl::ClassifierImpl(ClassifierOptions options_) : options(std::move(options_)) {
  ClassifierImpl::reset();
}

void ClassifierImpl::reset() {
  check_classifier(options);
  encoder = register_module("encoder", Encoder(options.encoder()));
  head = register_module("head", EncoderHead(options.head()));
}

void ClassifierImpl::reset_parameters() {
  encoder->reset_parameters();
  head->reset_parameters();
}

void ClassifierImpl::pretty_print(std::ostream& stream) const {
  stream << "posenc::Classifier(" << fields::name_of_enumerator(options.kind())
         << ", outputs=" << options.head().outputs() << ")";
}

torch::Tensor ClassifierImpl::table() const {
  return options.head().tied() ? encoder->embeddings->tokens->weight : torch::Tensor();
}

ClassifierOutput ClassifierImpl::forward(const torch::Tensor& input, const EncoderInputs& inputs) {
  ClassifierOutput out;
  out.encoder = encoder->forward(input, inputs);
  out.logits = head->forward(out.encoder, inputs.attention_mask(), table());
  return out;
}

torch::Tensor class_probabilities(const ClassifierOptions& options, const torch::Tensor& logits) {
  // The rows are the choices of a question.
  if (options.kind() == head::Kind::Choice) return at::softmax(logits, 0);
  if (options.kind() != head::Kind::Sequence && options.kind() != head::Kind::Image)
    return at::softmax(logits, -1);
  const auto default_problem =
      options.head().outputs() == 1 ? head::Problem::MultiLabel : head::Problem::SingleLabel;
  switch (options.problem().value_or(default_problem)) {
    case head::Problem::Regression: return logits;
    case head::Problem::MultiLabel: return at::sigmoid(logits);
    case head::Problem::SingleLabel: break;
  }
  return at::softmax(logits, -1);
}

}  // namespace posenc
