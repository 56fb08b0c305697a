#include "nn/print.h"

namespace posenc {

void print(std::ostream& stream, const Scale& scale) {
  if (scale.is_none()) return;
  stream << ", scale=";
  if (scale.is_sqrt_dim()) {
    stream << "sqrt(d_model)";
  } else {
    stream << scale.factor(0);
  }
}

void print(std::ostream& stream, const PositionalEncodingOptions& options) {
  stream << "max_len=" << options.max_len();
  if (options.storage() == Storage::Factored) stream << ", storage=factored";
  if (options.storage() == Storage::None) stream << ", storage=none";
  if (options.dropout() > 0.0) stream << ", dropout=" << options.dropout();
  if (!options.batch_first()) stream << ", batch_first=false";
  if (options.grow()) stream << ", grow=true";
}

}  // namespace posenc
