#include "docs/given.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "support/temp_dir.h"

namespace posenc::testing {
namespace {

using Rows = std::vector<std::vector<int64_t>>;

// 0 pads, 1 begins, 2 ends; every id is below 8, the smallest vocabulary in the examples.
struct Batch {
  const char* name;
  Rows sources, targets;
};
const Batch kSquare = {"Square",  // B == S == L == 4
                       {{3, 4, 5, 6}, {7, 5}, {4, 6, 3}, {5}},
                       {{1, 5, 6, 2}, {1, 7, 3, 2}, {1, 4, 2}, {1, 2}}};
const Batch kRagged = {
    "Ragged", {{3, 4, 5, 6, 7}, {5, 3}, {6, 7, 4}}, {{1, 5, 6, 3, 4, 2}, {1, 7, 2}, {1, 4, 6, 2}}};

at::Tensor padded(const Rows& rows) {
  size_t longest = 0;
  for (const auto& row : rows) longest = std::max(longest, row.size());
  const auto ids = torch::zeros({int64_t(rows.size()), int64_t(longest)}, torch::kLong);
  for (size_t b = 0; b < rows.size(); ++b) {
    ids[int64_t(b)].slice(0, 0, int64_t(rows[b].size())).copy_(torch::tensor(rows[b]));
  }
  return ids;
}

class Input : public Given {
 public:
  explicit Input(const Batch* batch) : batch_(batch) {}

  at::Tensor tensor(const char* name, const at::Tensor& as_it_is) override {
    if (!batch_) return as_it_is;
    const std::string requested = name;
    if (requested == "tgt") return padded(batch_->targets);
    const auto ids = padded(batch_->sources);
    return requested == "mask" ? (ids != 0).to(as_it_is.dtype()) : ids;
  }

  at::Tensor vectors(const char*, const at::Tensor& own) override {
    if (!batch_) return own;
    const auto ids = padded(batch_->sources);
    return own[0][0].expand({ids.size(0), ids.size(1), own.size(2)}).contiguous();
  }

  std::vector<at::Tensor> sequences(const char*, const std::vector<at::Tensor>& own) override {
    if (!batch_) return own;
    std::vector<at::Tensor> found;
    for (const auto& row : batch_->sources) found.push_back(torch::tensor(row));
    return found;
  }

  std::vector<TokenPair> pairs(const char*, const std::vector<TokenPair>& own) override {
    if (!batch_) return own;
    std::vector<TokenPair> found;
    for (size_t i = 0; i < batch_->sources.size(); ++i) {
      found.push_back({batch_->sources[i], batch_->targets[i]});
    }
    return found;
  }

  void shape(const char* name, const at::Tensor& value, const char* stated) override {
    std::istringstream words(stated);
    std::vector<int64_t> expected;
    for (std::string word; std::getline(words, word, ',');) {
      word.erase(0, word.find_first_not_of(" ("));
      if (word.back() == ')') word.pop_back();
      if (word.empty()) continue;  // `(N,)`
      const auto axis = expected.size();
      const bool number = std::isdigit(static_cast<unsigned char>(word[0]));
      const int64_t here = axis < size_t(value.dim()) ? value.size(int64_t(axis)) : -1;
      expected.push_back(number ? std::stoll(word)
                                : lengths_.try_emplace(word, here).first->second);
    }
    EXPECT_EQ(value.sizes().vec(), expected) << name << " is said to be " << stated;
  }

 private:
  const Batch* batch_;
  std::map<std::string, int64_t> lengths_;
};

// Changes to a new temporary folder, which the destructor leaves and removes.
class InEmptyFolder {
 public:
  InEmptyFolder() : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(folder_.path());
  }
  ~InEmptyFolder() { std::filesystem::current_path(before_); }
  InEmptyFolder(const InEmptyFolder&) = delete;
  InEmptyFolder& operator=(const InEmptyFolder&) = delete;

 private:
  std::filesystem::path before_;
  TempDir folder_;
};

class Documented : public ::testing::Test {
 public:
  Documented(const Example& example, const Batch* batch) : example_(example), given_(batch) {}

  void TestBody() override {
    const InEmptyFolder here;
    const std::filesystem::path marian(POSENC_LIVE_DIR "/marian/shared");
    std::filesystem::create_directory_symlink(marian, "opus-mt-en-de");
    std::filesystem::create_directory("models");
    for (const char* name : {"bert-base-uncased", "all-MiniLM-L6-v2"}) {  // small ones of that kind
      std::filesystem::create_directory_symlink(POSENC_LIVE_DIR "/encoder/bert",
                                                std::string("models/") + name);
    }
    for (const auto& [made, name] :
         {std::pair("emotions", "bert-emotions"), std::pair("entities", "bert-entities"),
          std::pair("answers", "bert-answers"), std::pair("masked", "bert-large-uncased"),
          std::pair("masked", "splade"), std::pair("colbert", "colbertv2.0"),
          std::pair("reranker", "ms-marco-MiniLM-L6-v2"),
          std::pair("clip", "clip-vit-base-patch32")}) {
      std::filesystem::create_directory_symlink(std::string(POSENC_LIVE_DIR "/encoder/") + made,
                                                std::string("models/") + name);
    }
    for (const char* name : {"tagger.pt", "golden.safetensors"}) {
      std::filesystem::create_symlink(std::string(POSENC_LIVE_DIR "/") + name, name);
    }
    const std::filesystem::path story(POSENC_LIVE_DIR "/llama/story");
    std::filesystem::create_directory_symlink(story, "models/gpt2");
    std::filesystem::create_directory("models/Qwen3-0.6B");
    for (const auto& file : std::filesystem::directory_iterator(story))
      std::filesystem::create_symlink(file.path(), "models/Qwen3-0.6B" / file.path().filename());
    std::ofstream("models/Qwen3-0.6B/chat_template.jinja")
        << "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}";
    std::filesystem::create_directory_symlink(POSENC_LIVE_DIR "/whisper", "models/whisper-tiny");
    for (const char* name : {"speech.wav", "one.wav", "two.wav"}) {
      std::ofstream(name, std::ios::binary)
          << std::string("RIFF\0\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0", 28)
          << std::string("\x80\x3e\0\0\2\0\x10\0data\0\0\0\0", 16) << std::string(16000, '\1');
    }
    torch::manual_seed(0);
    example_.run(given_);
  }

 private:
  const Example& example_;
  Input given_;
};

}  // namespace

bool add_examples(const Example* examples, std::size_t count) {
  for (const Example* example = examples; example != examples + count; ++example) {
    std::string suite = example->source;
    for (char& letter : suite) {
      if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
    }
    for (const Batch* batch : {static_cast<const Batch*>(nullptr), &kSquare, &kRagged}) {
      if (batch && !example->has_inputs) continue;
      const auto name = "Line" + std::to_string(example->line) + (batch ? batch->name : "");
      ::testing::RegisterTest(suite.c_str(), name.c_str(), nullptr, nullptr, example->source,
                              example->line,
                              [=]() -> Documented* { return new Documented(*example, batch); });
    }
  }
  return true;
}

}  // namespace posenc::testing
