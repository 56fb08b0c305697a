#pragma once

#include <string_view>
#include <vector>

#include "tokenizers/folder/class_builder.h"

/// The constructors of the classes of transformers 5.23: for each a row of what it makes
/// (class_rows.inc), and for some of them code.
namespace posenc::text {

/// Whether posenc has the constructor of a class.
bool has_constructor(std::string_view tokenizer_class);

/// Makes a tokenizer as the constructor of the builder's class does. Throws TokenizerError.
void construct(ClassBuilder& builder);

/// What a class does beside its row: before the constructor of TokenizersBackend, and at its end.
struct ClassExceptions {
  using Step = void (*)(ClassBuilder&);
  std::string_view name;
  Step before = nullptr, after = nullptr;
};
const std::vector<ClassExceptions>& class_exceptions();

/// The steps of translation models, which put the language of a text beside it.
void name_mbart_languages(ClassBuilder& builder);
void set_mbart_languages(ClassBuilder& builder);
void insert_mbart50_languages(ClassBuilder& builder);
void set_mbart50_languages(ClassBuilder& builder);
void set_nllb_languages(ClassBuilder& builder);
void set_seamless_languages(ClassBuilder& builder);

/// Makes ESMC's tokenizer, whose vocabulary is part of the class.
void construct_esmc(ClassBuilder& builder);

}  // namespace posenc::text
