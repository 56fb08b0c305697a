// Encoders that are made without memory, as load_encoder() does before it makes one that has it.

#include <gtest/gtest.h>

#include "core/torch_internals/without_memory.h"
#include "posenc/core/skip_init.h"
#include "posenc/models/encoder.h"
#include "posenc/weights/state_dict.h"

namespace posenc::testing {
namespace {

// Those of the class's defaults; nothing for a class that leaves a size to the file.
std::optional<EncoderOptions> options_of(const std::string& type) {
  try {
    return encoder_options_from_hf("{\"model_type\": \"" + type + "\"}");
  } catch (const c10::ValueError&) {
    return std::nullopt;
  }
}

// Nothing in the constructor of an encoder reads numbers that are not there.
TEST(EncoderWithoutMemory, HasTheTensorsOfOneWithMemory) {
  constexpr int64_t kMost = 300'000'000;  // parameters, whose memory is reserved and never written
  int compared = 0;
  for (const std::string& type : encoder_model_types()) {
    SCOPED_TRACE(type);
    const auto made = options_of(type);
    if (!made) continue;
    const EncoderOptions& options = *made;
    Encoder without(nullptr);
    {
      const torch_internals::WithoutMemory guard;
      without = Encoder(options);
    }
    int64_t count = 0;
    for (const at::Tensor& parameter : without->parameters()) count += parameter.numel();
    if (count > kMost) continue;
    const SkipInit skip;
    const StateDict with = state_dict(*Encoder(options)), names = state_dict(*without);
    ASSERT_EQ(with.keys(), names.keys());
    for (const auto& item : with)
      EXPECT_EQ(names[item.key()].sizes(), item.value().sizes()) << item.key();
    ++compared;
  }
  EXPECT_GT(compared, 20);
}

}  // namespace
}  // namespace posenc::testing
