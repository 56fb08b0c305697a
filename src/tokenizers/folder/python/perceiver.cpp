#include "tokenizers/decoders/lossy_utf8.h"
#include "tokenizers/folder/python/constructors.h"
#include "tokenizers/python/byte_class.h"

namespace posenc::text {
namespace {

constexpr std::pair<const char*, const char*> kPerceiverSpecials[] = {
    {"pad_token", "[PAD]"},   {"bos_token", "[BOS]"}, {"eos_token", "[EOS]"},
    {"mask_token", "[MASK]"}, {"cls_token", "[CLS]"}, {"sep_token", "[SEP]"}};

class PerceiverClass : public ByteClass {
 public:
  PerceiverClass() : ByteClass(std::size(kPerceiverSpecials)) {}

  std::string join(const std::vector<std::string>& tokens,
                   const PythonAddedTokens& added) const override {
    return lossy_utf8(bytes_of(tokens, added));
  }
};

}  // namespace

void construct_perceiver(PythonBuilder& builder) {
  uint32_t id = 0;
  for (const auto& [name, otherwise] : kPerceiverSpecials) {
    PythonBuilder::Named token = builder.named(name, otherwise);
    if (!token) refuse(name, "be a token of PerceiverTokenizer", "null");
    token->has_flags = true;
    builder.add_first(id++, *token);
    builder.named(name, token);
  }
  builder.arguments.set_default("model_max_length", 2048);
  builder.finish(std::make_unique<PerceiverClass>());
  builder.set_around(builder.around("cls_token A sep_token", "cls_token A sep_token B sep_token"));
}

}  // namespace posenc::text
