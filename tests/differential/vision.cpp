// Vision embeddings from configurations, and resized tables of positions.

#include <ATen/Parallel.h>

#include "differential/ops.h"
#include "posenc/models/vision_embeddings_preset.h"
#include "posenc/positions/nn/vision_embeddings.h"

namespace posenc::differential {
namespace {

VisionEmbeddingsOptions vision_options(const Json& options) {
  auto how = vision_embeddings_options_from_hf(options.at("config").get<std::string>());
  if (options.value("mask_token", false)) how.mask_token(true);
  return how;
}

StateDict vision(const Json& options, const StateDict& tensors) {
  // oneDNN's sums of a convolution's gradients depend on the number of threads; Python has one.
  at::set_num_threads(1);
  VisionEmbeddings module(vision_options(options));
  return differentiate(*module, options, tensors, [&](const StateDict& in) {
    const auto given = [&](const char* name) {
      return in.contains(name) ? in[name] : at::Tensor();
    };
    return module->forward(
        in["pixel_values"],
        VisionEmbeddingsInputs().bool_masked_pos(given("bool_masked_pos")).noise(given("noise")));
  });
}

// The tensors of a new module; frozen tables are not random.
StateDict vision_table(const Json& options, const StateDict&) {
  StateDict results;
  results.insert("table", VisionEmbeddings(vision_options(options))->position_table);
  return results;
}

StateDict resize(const Json& options, const StateDict& tensors) {
  const at::Tensor table = tensors["table"].clone().requires_grad_();
  const at::Tensor out = functional::resize_positions(
      table, options.at("height"), options.at("width"),
      position_resize_of(options.at("rule").get<std::string>()), options.value("prefix", 0),
      options.value("from_height", 0), options.value("from_width", 0));
  StateDict results;
  results.insert("out", out);
  if (tensors.contains("cotangent")) {
    (out * tensors["cotangent"]).sum().backward();
    results.insert("grad", table.grad());
  }
  return results;
}

}  // namespace

Ops vision_ops() {
  return {{"vision", vision}, {"vision_table", vision_table}, {"resize_positions", resize}};
}

}  // namespace posenc::differential
