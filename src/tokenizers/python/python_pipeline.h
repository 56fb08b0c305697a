#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "tokenizers/pipeline/text_pipeline.h"
#include "tokenizers/pipeline/workspaces.h"
#include "tokenizers/python/python_parts.h"

namespace posenc::text {

struct FolderSettings;

/// A tokenizer of a class of transformers that is written in Python: PythonBackend around a
/// PythonClass. Its tokens have no offsets.
class PythonPipeline : public TextPipeline {
 public:
  PythonPipeline(PythonParts parts, const FolderSettings& settings);
  ~PythonPipeline() override;

  void encode(std::string_view text, std::optional<std::string_view> pair,
              const EncodeRequest& request, std::size_t index, EncodedRows& rows) const override;
  std::string decode(const std::vector<uint32_t>& ids, bool skip_special_tokens) const override;
  std::string join(std::vector<std::string> tokens) const override {
    return parts_.python_class->join(tokens, parts_.added);
  }
  bool marks_subwords() const override { return false; }
  std::optional<uint32_t> token_to_id(std::string_view token) const override;
  std::optional<std::string> id_to_token(uint32_t id) const override;
  bool lists(uint32_t id) const override;
  std::size_t vocab_size() const override { return size_; }
  bool has_offsets() const override { return false; }

 private:
  struct Workspace;

  void tokenize(std::string_view text, const PythonClass& python_class, Workspace& work,
                std::size_t which) const;
  void cut(std::string_view text, const PythonClass& python_class, Workspace& work,
           PythonTokens& tokens) const;
  uint32_t id_of(const PythonTokens& tokens, std::size_t i, const PythonClass& python_class) const;
  std::size_t truncate(const EncodeRequest& request, const PythonTemplate& around,
                       std::size_t texts, Workspace& work) const;
  [[noreturn]] void refuse_request(const char* name, const std::string& rule) const;

  PythonParts parts_;
  std::string name_;
  std::optional<uint32_t> unknown_;
  std::unordered_set<uint32_t> special_ids_;
  bool splits_specials_;
  std::size_t size_ = 0;
  mutable Workspaces<Workspace> workspaces_;
};

}  // namespace posenc::text
