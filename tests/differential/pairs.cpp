#include "differential/encoder_case.h"
#include "differential/ops.h"
#include "posenc/models/dual_encoder.h"

namespace posenc::differential {
namespace {

StateDict compare_pair(const Json& options, const StateDict& tensors) {
  DualEncoder model = load_dual_encoder(options.at("folder"));
  const EncoderInputs inputs = encoder_inputs(tensors);
  const DualEncoderOutput out =
      model->forward(tensors["input_ids"], tensors["pixel_values"], inputs);
  StateDict results;
  results.insert("text_embeds", out.text_embeds);
  results.insert("image_embeds", out.image_embeds);
  results.insert("logits_per_text", out.logits_per_text);
  results.insert("text_features", model->text_features(tensors["input_ids"], inputs));
  results.insert("image_features", model->image_features(tensors["pixel_values"]));
  return results;
}

}  // namespace

Ops pair_ops() { return {{"pair", compare_pair}}; }

}  // namespace posenc::differential
