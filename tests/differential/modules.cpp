// Embeddings and positions through conversions, growth, loading, sharing and modes, beside the
// composition that PyTorch's user writes, in float64 with roundings of the module's dtype allowed.

#include <torch/nn/functional/embedding.h>
#include <torch/utils.h>

#include "differential/drawn.h"
#include "posenc/positions/nn/input_embedding.h"
#include "posenc/positions/nn/token_and_position_embedding.h"
#include "posenc/weights/load.h"

namespace posenc::differential {

void part_case(Drawn& drawn);  // in module_parts.cpp

namespace {

double eps_of(at::ScalarType type) {
  return type == at::kDouble  ? 1e-14
         : type == at::kFloat ? 1.2e-7
         : type == at::kHalf  ? 9.8e-4
                              : 7.9e-3;
}

// The formula of the paper in float64.
at::Tensor formula(const SinusoidOptions& how, int64_t rows) {
  const auto p = (torch::arange(rows, torch::kDouble) * how.step() + how.start()).unsqueeze(1);
  const auto f =
      torch::pow(how.base(), -torch::arange(0, how.dim(), 2, torch::kDouble) / double(how.dim()));
  return torch::stack({(p * f).sin(), (p * f).cos()}, -1).view({rows, how.dim()});
}

bool is_half(at::ScalarType type) { return type == at::kHalf || type == at::kBFloat16; }

// Either class, by the names that they share.
struct Module {
  InputEmbedding input{nullptr};
  TokenAndPositionEmbedding token_and_position{nullptr};

  torch::nn::Module& get() {
    return input ? static_cast<torch::nn::Module&>(*input) : *token_and_position;
  }
  torch::nn::Embedding& table() {
    return input ? input->token_embedding->embedding : token_and_position->token_embedding;
  }
  PositionalEncoding& positions() {
    return input ? input->pos_encoding : token_and_position->position_encoding;
  }
  torch::nn::Dropout& dropout() {
    return input ? input->pos_encoding->dropout : token_and_position->dropout;
  }
  at::Tensor forward(const at::Tensor& ids, int64_t offset, const at::Tensor& given) {
    return input ? input->forward(ids, offset, given)
                 : token_and_position->forward(ids, offset, given);
  }
  void clone() {
    if (input)
      input = InputEmbedding(std::dynamic_pointer_cast<InputEmbeddingImpl>(input->clone()));
    else
      token_and_position = TokenAndPositionEmbedding(
          std::dynamic_pointer_cast<TokenAndPositionEmbeddingImpl>(token_and_position->clone()));
  }
};

// What PyTorch's user would know of the module.
class Program {
 public:
  explicit Program(Drawn& drawn) : drawn_(drawn), sinusoid_(2 * drawn.between(2, 40)) {
    const int64_t width = sinusoid_.dim();
    rows_ = drawn.any<int64_t>({5, 40, 512, 5000, 5000});
    vocab_ = drawn.between(2, 30);
    exact_ = drawn.coin(0.6);
    if (exact_) sinusoid_.precision(Precision::Exact);
    if (drawn.coin(0.2)) sinusoid_.base(100.0);
    if (drawn.coin(0.1)) sinusoid_.start(3.0);
    source_ = drawn.any({TableSource::Buffer, TableSource::Buffer, TableSource::Buffer,
                         TableSource::Factored, TableSource::OnTheFly});
    if (source_ == TableSource::Factored && !exact_) source_ = TableSource::OnTheFly;
    grows_ = drawn.coin(), batch_first_ = drawn.coin(0.8), reuses_ = drawn.coin(0.3);
    scale_ = drawn.any({1.0, std::sqrt(double(width))});
    if (drawn.coin(0.4)) padding_ = drawn.between(-vocab_, vocab_ - 1);
    dropout_ = drawn.any({0.0, 0.0, 0.5});
    const bool sparse = drawn.coin(0.2);
    const auto fill = [&](auto how) {
      how.scale(scale_ == 1.0 ? Scale(Scale::None) : Scale(Scale::SqrtDim))
          .padding_idx(padding_)
          .dropout(dropout_);
      return how.table_source(source_)
          .batch_first(batch_first_)
          .grow(grows_)
          .sinusoid(sinusoid_)
          .sparse(sparse)
          .reuse_output(reuses_);
    };
    if (drawn.coin(0.15))
      drawn.did("all in inference mode"), server_ = std::make_unique<c10::InferenceMode>();
    const auto inference = maybe_inference("made");
    if (drawn.coin())
      module_.input = InputEmbedding(fill(InputEmbeddingOptions(vocab_, width, rows_)));
    else
      module_.token_and_position =
          TokenAndPositionEmbedding(fill(TokenAndPositionEmbeddingOptions(vocab_, width, rows_)));
    drawn.did(std::string(module_.input ? "InputEmbedding" : "TokenAndPositionEmbedding") +
              (exact_ ? " exact" : "") + ", source " + std::to_string(int(source_)) + ", max_len " +
              std::to_string(rows_) + ", width " + std::to_string(width) +
              (grows_ ? ", grows" : "") + (reuses_ ? ", reuses" : "") + ", dropout " +
              std::to_string(dropout_));
  }

  void run() {
    for (int64_t steps = drawn_.between(2, 8); steps > 0; --steps) {
      switch (drawn_.below(9)) {
        case 0:
        case 1: convert(); break;
        case 2: load(); break;
        case 3: modes(); break;
        case 4: share(); break;
        case 5: drawn_.did("clone"), module_.clone(), shared_ = false; break;
        case 6: ask_table(); break;
        default: forward();
      }
    }
    forward();
  }

 private:
  std::unique_ptr<c10::InferenceMode> maybe_inference(const char* what) {
    std::unique_ptr<c10::InferenceMode> mode;
    if (drawn_.coin(0.15))
      drawn_.did(std::string("inference mode, ") + what),
          mode = std::make_unique<c10::InferenceMode>();
    return mode;
  }

  bool is_inference() {
    const auto pe = module_.positions()->pe;
    return module_.table()->weight.is_inference() || (pe.defined() && pe.is_inference());
  }

  void convert() {
    const auto type =
        drawn_.any({at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kHalf, at::kBFloat16});
    const bool table_asks =
        module_.positions()->pe.defined() && module_.positions()->pe.requires_grad();
    if (table_asks) return;  // what becomes of a trained table is cast
    const int64_t part = drawn_.coin(0.8) ? 0 : drawn_.between(1, 2);
    const auto mode = maybe_inference("converted");
    if (!mode && !server_ && is_inference()) return;  // LibTorch takes no views of the result
    drawn_.did(std::string(part == 0   ? "all"
                           : part == 1 ? "positions"
                                       : "tokens") +
               " to " + toString(type));
    if (part == 0) module_.get().to(type);
    if (part == 1) module_.positions()->to(type);
    if (part == 2) module_.table()->to(type);
    if (part != 2) rows_type_ = type;
    if (part == 0 && shared_) other_->to(type);  // another module registers it
    if (part != 2 && own_.defined()) own_ = own_.to(type);
  }

  // Another table, by load_state_dict(), copy_() or a state dict of its own.
  void load() {
    auto& pe = module_.positions()->pe;
    if (!pe.defined() || (pe.requires_grad())) return;
    const auto mode = maybe_inference("loaded");
    if (!mode && !server_ && is_inference()) return;  // PyTorch refuses that
    const torch::NoGradGuard no_grad;
    if (drawn_.coin(0.3)) {
      const auto own = state_dict(module_.get());
      StateDict copied;
      for (const auto& item : own) copied.insert(item.key(), item.value().clone());
      drawn_.did("load of its own state");
      load_state_dict(module_.get(), copied);
      return;
    }
    const auto other = torch::randn(pe.sizes()).to(pe.scalar_type());
    if (drawn_.coin()) {
      drawn_.did("copy_ to pe"), pe.copy_(other);
    } else {
      StateDict all;
      for (const auto& item : state_dict(module_.get()))
        all.insert(item.key(), item.value().sizes() == pe.sizes() ? other : item.value().clone());
      drawn_.did("load of another table"), load_state_dict(module_.get(), all);
    }
    own_ = other.clone();
  }

  void modes() {
    const bool on = drawn_.coin();
    if (drawn_.coin()) {
      drawn_.did(on ? "train()" : "eval()"), module_.get().train(on);
    } else {
      drawn_.did(on ? "dropout->train()" : "dropout->eval()"), module_.dropout()->train(on);
    }
  }

  void share() {
    if (!module_.token_and_position || shared_) return;
    torch::nn::EmbeddingOptions how(vocab_, sinusoid_.dim());
    const bool pads = drawn_.coin();
    if (pads) how.padding_idx(drawn_.below(vocab_));
    other_ = torch::nn::Embedding(how.sparse(drawn_.coin(0.3)));
    const auto mine = module_.table()->weight.scalar_type();
    other_->to(mine);
    const auto refused = outcome_of([&] {
      return module_.token_and_position->share_tokens(other_), std::vector<at::Tensor>();
    });
    drawn_.did(pads ? "shares a table with padding" : "shares a table without padding");
    if (!refused.error.empty()) return;
    padding_ = other_->options.padding_idx(), shared_ = true;
  }

  void ask_table() {
    auto& pe = module_.positions()->pe;
    if (!pe.defined() || is_inference()) return;
    drawn_.did("pe asks for a gradient"), pe.set_requires_grad(true);
  }

  void forward() {
    const int64_t batch = drawn_.between(1, 4);
    const int64_t length = drawn_.coin(0.7) ? drawn_.between(1, 12) : drawn_.between(1, 60);
    const auto shape =
        batch_first_ ? std::vector<int64_t>{batch, length} : std::vector<int64_t>{length, batch};
    const auto ids = torch::randint(vocab_, shape, torch::kLong);
    int64_t offset = drawn_.any<int64_t>({0, 0, 2, 30});
    auto positions = torch::arange(offset, offset + length).unsqueeze(batch_first_ ? 0 : 1);
    at::Tensor given;
    if (drawn_.coin(0.3))
      offset = 0,
      positions = given = torch::randint(drawn_.any<int64_t>({5, 40, 600}), shape, torch::kLong);
    const int64_t last = positions.max().item<int64_t>();
    auto& pe = module_.positions()->pe;
    const int64_t now = pe.defined() ? pe.size(1) : 0;
    const bool refused = pe.defined() && last >= now && (!grows_ || pe.requires_grad());
    const auto mode = maybe_inference("forward");
    const bool records = !mode && !server_ && !is_inference() && drawn_.coin(0.6);
    torch::AutoGradMode grad(records);
    auto weight = module_.table()->weight;
    const int64_t seed = drawn_.below(1 << 30);
    drawn_.did("forward " + std::to_string(length) + " at " + std::to_string(last) +
               (records ? ", recorded" : ""));
    torch::manual_seed(seed);
    at::Tensor out;
    const auto got = outcome_of(
        [&] { return out = module_.forward(ids, offset, given), std::vector<at::Tensor>(); });
    if (!got.error.empty()) {
      if (refused) return;
      drawn_.fail("forward: " + got.error);
    }
    if (refused) drawn_.fail("positions beyond the table were not refused");
    compare(out, ids, positions, seed);
    if (records) backward(out, ids, positions, seed);
  }

  at::Tensor table(int64_t rows) {
    auto values = formula(sinusoid_, rows);
    if (own_.defined())
      values =
          torch::cat({own_[0].to(torch::kDouble).slice(0, 0, rows), values.slice(0, own_.size(1))});
    return values;
  }

  at::Tensor mask(const at::Tensor& out, int64_t seed) {
    if (!module_.dropout()->is_training() || dropout_ == 0.0)
      return torch::ones(out.sizes(), torch::kDouble);
    torch::manual_seed(seed);
    return at::dropout(torch::ones(out.sizes(), out.scalar_type()), dropout_, true)
        .to(torch::kDouble);
  }

  void compare(const at::Tensor& out, const at::Tensor& ids, const at::Tensor& positions,
               int64_t seed) {
    const torch::NoGradGuard no_grad;
    const auto weight = module_.table()->weight;
    const auto& pe = module_.positions()->pe;
    // Exact rounds once, to the type of the tokens.
    const auto type = exact_ && is_half(weight.scalar_type())
                          ? weight.scalar_type()
                          : at::promoteTypes(weight.scalar_type(), rows_type_);
    if (out.scalar_type() != type)
      drawn_.fail(std::string("dtype ") + toString(out.scalar_type()) + " for " + toString(type));
    const int64_t last = positions.max().item<int64_t>();
    const auto tokens = weight.to(torch::kDouble).index({ids}) * scale_,
               rows = table(last + 1).index({positions});
    const auto sum = (tokens + rows) * mask(out, seed);
    const double coarse =
        std::max({eps_of(type), eps_of(weight.scalar_type()), eps_of(rows_type_)});
    const auto bound = 6 * coarse * (tokens.abs() + 1.0) + (exact_ ? 1e-15 : 2e-7) * (last + 4);
    const auto off = (out.to(torch::kDouble) - sum).abs();
    if (!(off <= bound).all().item<bool>())
      drawn_.fail("sum off by " + std::to_string(off.max().item<double>()));
    const bool uniform = rows_type_ == weight.scalar_type();
    if (!exact_ || own_.defined() || !is_half(type) || !uniform ||
        module_.dropout()->is_training() || (pe.defined() && pe.requires_grad()))
      return;
    const double wrong = (out != sum.to(type)).to(torch::kDouble).mean().item<double>();
    if (wrong > 0.02 && out.numel() > 50)
      drawn_.fail(std::to_string(wrong) + " of the elements are not rounded once");
  }

  void backward(const at::Tensor& out, const at::Tensor& ids, const at::Tensor& positions,
                int64_t seed) {
    auto& pe = module_.positions()->pe;
    const auto weight = module_.table()->weight;
    const bool table_asks = pe.defined() && pe.requires_grad();
    if (!out.requires_grad()) drawn_.fail("the result records no gradient");
    const auto cotangent = torch::randn(out.sizes()).to(out.scalar_type());
    const auto kept = cotangent.to(torch::kDouble) * mask(out, seed);
    weight.mutable_grad() = at::Tensor();
    if (table_asks) pe.mutable_grad() = at::Tensor();
    const auto done =
        outcome_of([&] { return out.backward(cotangent), std::vector<at::Tensor>(); });
    if (!done.error.empty()) drawn_.fail("backward: " + done.error);
    const auto flat = kept.reshape({-1, kept.size(-1)});
    const auto check = [&](const char* what, const at::Tensor& got, at::Tensor expected) {
      if (!got.defined()) drawn_.fail(std::string("no gradient of ") + what);
      const auto dense = got.is_sparse() ? got.to_dense() : got;
      const double off = (dense.to(torch::kDouble).reshape(expected.sizes()) - expected)
                             .abs()
                             .max()
                             .item<double>();
      const double limit =
          32 * eps_of(got.scalar_type()) *
          (expected.abs().max().item<double>() + kept.abs().max().item<double>() * 2);
      if (!(off <= limit))
        drawn_.fail(std::string("gradient of ") + what + " off by " + std::to_string(off));
    };
    auto of_tokens = torch::zeros({vocab_, sinusoid_.dim()}, torch::kDouble)
                         .index_add_(0, ids.reshape(-1), flat * scale_);
    if (padding_) of_tokens[*padding_ < 0 ? *padding_ + vocab_ : *padding_].zero_();
    check("the tokens", weight.grad(), of_tokens);
    if (!table_asks) return;
    const auto where = positions.expand(ids.sizes()).reshape(-1);
    check("pe", pe.grad(),
          torch::zeros({pe.size(1), pe.size(2)}, torch::kDouble).index_add_(0, where, flat));
  }

  Drawn& drawn_;
  std::unique_ptr<c10::InferenceMode> server_;  // of the whole program
  SinusoidOptions sinusoid_;
  Module module_;
  torch::nn::Embedding other_{nullptr};
  int64_t rows_ = 0, vocab_ = 0;
  double scale_ = 1.0, dropout_ = 0.0;
  bool exact_ = false, grows_ = false, batch_first_ = true, reuses_ = false, shared_ = false;
  std::optional<int64_t> padding_;
  TableSource source_ = TableSource::Buffer;
  at::ScalarType rows_type_ = at::kFloat;  // of the table, or of its rows without one
  at::Tensor own_;                         // a table that was loaded, in the module's dtype
};

StateDict modules(const Json& options, const StateDict&) {
  Drawn drawn(options);
  if (drawn.coin(0.6)) {
    Program(drawn).run();
  } else {
    part_case(drawn);
  }
  return StateDict();
}

}  // namespace

Ops module_ops() { return {{"modules", modules}}; }

}  // namespace posenc::differential
