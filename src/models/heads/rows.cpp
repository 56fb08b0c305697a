#include "models/heads/rows.h"

#include <ATen/ops/cat.h>

#include "posenc/models/functional/pooling.h"

namespace posenc {
namespace {

// transformers' mean, of the rows of padding too.
at::Tensor mean_of_rows(const EncoderHeadOptions& options, const at::Tensor& hidden) {
  TORCH_CHECK_VALUE(hidden.size(1) > options.first_row(), "[EncoderHead] there must be rows from ",
                    "first_row ", options.first_row(), " on. Got ", hidden.sizes());
  return hidden.slice(1, options.first_row()).mean(1);
}

}  // namespace

at::Tensor head_rows(const EncoderHeadOptions& options, const EncoderOutput& output,
                     const at::Tensor& attention_mask) {
  const at::Tensor& hidden = output.last_hidden_state;
  switch (options.rows()) {
    case head::Rows::Mean: return functional::mean_pool(hidden, attention_mask);
    case head::Rows::MeanOfRows: return mean_of_rows(options, hidden);
    case head::Rows::FirstAndMean:
      return at::cat({hidden.select(1, 0), mean_of_rows(options, hidden)}, 1);
    default: break;
  }
  TORCH_CHECK_VALUE(output.pooled.defined(),
                    "[EncoderHead] the encoder must have a pooled output, which it has not");
  return output.pooled;
}

}  // namespace posenc
