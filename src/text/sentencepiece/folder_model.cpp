#include "text/sentencepiece/folder_model.h"

namespace posenc::text {

void read_sentencepiece_model(ClassBuilder& builder, ModelDefinition::Kind, const std::string& file) {
  refuse("its files", "include tokenizer.json", file + " for class " + builder.settings.tokenizer_class);
}

}  // namespace posenc::text
