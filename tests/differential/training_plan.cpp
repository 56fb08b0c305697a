#include "differential/training_plan.h"

#include <torch/nn/utils/clip_grad.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>

#include "posenc/train/fused_adam.h"
#include "posenc/train/fused_sgd.h"

namespace posenc::differential {
namespace {

// An optimiser of one's own: the sign of the momentum, smoothed.
struct OwnOptimizer : torch::optim::Optimizer, CheckpointableOptimizer {
  OwnOptimizer(std::vector<torch::optim::OptimizerParamGroup> groups, FusedSGDOptions defaults)
      : Optimizer(std::move(groups), std::make_unique<FusedSGDOptions>(defaults)) {}
  torch::Tensor step(LossClosure = nullptr) override {
    const torch::NoGradGuard no_grad;
    for (auto& group : param_groups()) {
      auto& how = static_cast<FusedSGDOptions&>(group.options());
      for (auto& p : group.params()) {
        if (!p.grad().defined()) continue;
        auto& state = state_[p.unsafeGetTensorImpl()];
        if (!state) state = std::make_unique<torch::optim::SGDParamState>();
        auto& own = static_cast<torch::optim::SGDParamState&>(*state);
        auto m = own.momentum_buffer().defined() ? own.momentum_buffer() : at::zeros_like(p);
        m = m * 0.9 + p.grad();
        own.momentum_buffer(m);
        p.sub_(m / (m.abs() + 0.05), how.get_lr());
      }
    }
    return {};
  }
  void save(torch::serialize::OutputArchive&) const override {}
  void load(torch::serialize::InputArchive&) override {}
  std::string rule() const override { return "own"; }
  NamedOptions named_options(size_t group) const override {
    return {{"lr", param_groups()[group].options().get_lr()}};
  }
  void set_named_options(size_t group, const NamedOptions& options) override {
    for (const auto& [name, value] : options) param_groups()[group].options().set_lr(value);
  }
};

template <typename Options>
std::vector<torch::optim::OptimizerParamGroup> groups_of(const Plan& plan,
                                                         const std::vector<at::Tensor>& all,
                                                         bool reordered) {
  std::vector<torch::optim::OptimizerParamGroup> groups;
  for (const GroupPlan& own : plan.groups) {
    std::vector<at::Tensor> listed;
    for (const size_t i : own.parameters) listed.push_back(all[i]);
    if (reordered) std::reverse(listed.begin(), listed.end());
    if (!own.lr && !own.weight_decay && !own.momentum) {
      groups.emplace_back(listed);
      continue;
    }
    auto options = std::make_unique<Options>();
    const bool by_setter = own.how == 0;
    if (own.lr)
      by_setter      ? void(options->lr(*own.lr))
      : own.how == 1 ? void(options->lr() = *own.lr)
                     : options->set_lr(*own.lr);
    if (own.weight_decay)
      by_setter ? void(options->weight_decay(*own.weight_decay))
                : void(options->weight_decay() = *own.weight_decay);
    if constexpr (requires { options->momentum(); })
      if (own.momentum)
        by_setter ? void(options->momentum(*own.momentum))
                  : void(options->momentum() = *own.momentum);
    groups.emplace_back(listed, std::move(options));
  }
  return groups;
}

template <typename Optimizer, typename Options>
std::unique_ptr<torch::optim::Optimizer> make(const Plan& plan, const std::vector<at::Tensor>& all,
                                              bool reordered) {
  Options options(plan.lr);
  options.weight_decay(plan.weight_decay);
  if constexpr (requires { options.momentum(); }) options.momentum(plan.momentum);
  return std::make_unique<Optimizer>(groups_of<Options>(plan, all, reordered), options);
}

}  // namespace

double factor(int64_t step) { return 1.0 / (1.0 + 0.2 * static_cast<double>(step)); }

at::Tensor loss_of(Net& net, torch::nn::Linear head, const PairBatch& batch, bool nan) {
  const auto labels = batch.tgt_labels(), real = labels.ne(batch.pad_id);
  auto x = at::tanh(net.a->forward(net.table->forward(batch.tgt_input().clamp_min(0))));
  x = net.b->forward(net.dropout->forward(x));
  if (head) x = head->forward(x);
  const auto off = (x.mean(-1) - labels.to(x.scalar_type()) / 7.0).square();
  auto loss = (off * real).sum() / real.sum();
  if (nan) loss = loss + (net.a->bias * 0).square().sum().sqrt();  // value 0, gradient NaN
  return loss;
}

std::vector<TokenPair> pairs_of(const Plan& plan) {
  std::mt19937 random(static_cast<unsigned>(plan.data_seed));
  const auto one = [&](int64_t least) {
    std::vector<int64_t> ids;
    for (int64_t n = least + static_cast<int64_t>(random() % 5); n > 0; --n)
      ids.push_back(plan.pads ? random() % kVocab : 1 + random() % (kVocab - 1));
    return ids;
  };
  std::vector<TokenPair> pairs;
  for (int i = 0; i < 9; ++i) {
    auto src = one(1);
    pairs.push_back({src, one(2)});
  }
  return pairs;
}

PairLoader loader_of(const Plan& plan) {
  return PairLoader(pairs_of(plan), PairLoaderOptions().max_rows(3).seed(plan.data_seed));
}

Run::Run(const Plan& plan_, bool reordered)
    : plan(plan_), net((torch::manual_seed(plan_.seed), plan_.dropout)), loader(loader_of(plan_)) {
  if (plan.head) head = torch::nn::Linear(kWidth, kWidth);
  all = net.parameters();
  if (head)
    for (auto& p : head->parameters()) all.push_back(p);
  if (plan.kind == "Adam")
    optimizer = make<FusedAdam, FusedAdamOptions>(plan, all, reordered);
  else if (plan.kind == "AdamW")
    optimizer = make<FusedAdamW, FusedAdamWOptions>(plan, all, reordered);
  else if (plan.kind == "own")
    optimizer = std::make_unique<OwnOptimizer>(groups_of<FusedSGDOptions>(plan, all, reordered),
                                               FusedSGDOptions(plan.lr).momentum(0.0));
  else
    optimizer = make<FusedSGD, FusedSGDOptions>(plan, all, reordered);
  // LibTorch gives a group whose options it does not know those of the optimiser.
  for (size_t g = 0; plan.kind == "own" && g < plan.groups.size(); ++g)
    optimizer->param_groups()[g].options().set_lr(plan.groups[g].lr.value_or(plan.lr));
  if (plan.twice)
    optimizer->param_groups()[0].params().push_back(optimizer->param_groups()[0].params()[0]);
  if (plan.schedule) schedule = std::make_unique<LambdaLR>(*optimizer, factor);
  torch::manual_seed(plan.seed + 1);
}

std::vector<at::Tensor> reference(const Plan& plan) {
  Run run(plan, false);  // only its modules and data
  struct State {
    at::Tensor m, v;
  };
  std::vector<State> states(run.all.size());
  std::vector<double> rates;
  for (const auto& group : plan.groups) rates.push_back(group.lr.value_or(plan.lr));
  const auto bases = rates;
  if (plan.schedule)
    for (size_t g = 0; g < rates.size(); ++g) rates[g] = bases[g] * factor(0);
  run.net.train();
  for (int64_t step = 1; step <= plan.steps; ++step) {
    for (auto& p : run.all) p.mutable_grad() = at::Tensor();
    std::vector<PairBatch> batches;
    double whole = 0.0;
    for (int64_t i = 0; i < plan.micro; ++i) batches.push_back(run.loader.next());
    const auto count = [](const PairBatch& batch) {
      return batch.tgt_labels().ne(batch.pad_id).sum().item<double>();
    };
    for (const auto& batch : batches) whole += count(batch);
    for (const auto& batch : batches)
      (loss_of(run.net, run.head, batch, plan.nan_at == step) * (count(batch) / whole)).backward();
    if (plan.clip > 0) torch::nn::utils::clip_grad_norm_(run.all, plan.clip);
    const torch::NoGradGuard no_grad;
    for (size_t g = 0; g < plan.groups.size(); ++g) {
      const double decay = plan.groups[g].weight_decay.value_or(plan.weight_decay);
      const double momentum = plan.groups[g].momentum.value_or(plan.momentum), lr = rates[g];
      for (const size_t i : plan.groups[g].parameters) {
        auto p = run.all[i];
        if (!p.grad().defined()) continue;
        auto grad = p.grad();
        auto& [m, v] = states[i];
        const bool first = !m.defined();
        if (first) m = at::zeros_like(p), v = at::zeros_like(p);
        if (plan.kind == "own") {
          m = m * 0.9 + grad, p.sub_(m / (m.abs() + 0.05), lr);
          continue;
        }
        if (plan.kind == "AdamW")
          p.mul_(1 - lr * decay);
        else
          grad = grad + p * decay;
        if (plan.kind == "SGD") {
          m = first ? grad : m * momentum + grad;
          p.sub_(momentum == 0.0 ? grad : m, lr);
          continue;
        }
        m = m * 0.9 + grad * 0.1, v = v * 0.999 + grad * grad * 0.001;
        p.sub_(m / (1 - std::pow(0.9, step)) / ((v / (1 - std::pow(0.999, step))).sqrt() + 1e-8),
               lr);
      }
    }
    if (plan.schedule)
      for (size_t g = 0; g < rates.size(); ++g) rates[g] = bases[g] * factor(step);
    if (plan.rate_at == step) rates[0] *= 0.1;
  }
  return run.weights();
}

Plan any_plan(Drawn& drawn) {
  Plan plan{};
  plan.kind = drawn.any<const char*>({"SGD", "SGD", "Adam", "AdamW", "own"});
  plan.lr = plan.kind == "SGD" ? 0.3 : 0.03, plan.seed = drawn.below(1 << 20),
  plan.data_seed = drawn.below(1 << 20);
  plan.weight_decay = plan.kind == "own" ? 0.0 : drawn.any({0.0, 0.1, 0.3}),
  plan.momentum = plan.kind == "SGD" ? drawn.any({0.0, 0.5, 0.9}) : 0.0;
  plan.dropout = drawn.any({0.0, 0.3}), plan.clip = drawn.any({0.0, 0.0, 0.5, 0.01});
  plan.steps = drawn.between(3, 14), plan.micro = drawn.any<int64_t>({1, 1, 2}),
  plan.report_every = drawn.between(1, 4);
  plan.save_every = drawn.between(0, 4), plan.head = drawn.coin(0.15), plan.schedule = drawn.coin();
#ifdef POSENC_DIFFERENTIAL_RANKS
  if (drawn.coin(0.2)) plan.ranks = 2, plan.dropout = 0.0;
#endif
  plan.twice = drawn.coin(0.07), plan.pads = drawn.coin(0.07), plan.reorders = drawn.coin(0.2);
  const size_t count = 5 + (plan.head ? 2 : 0);
  plan.groups.resize(static_cast<size_t>(drawn.between(1, 3)));
  for (size_t i = 0; i < count; ++i)
    plan.groups[static_cast<size_t>(drawn.below(static_cast<int64_t>(plan.groups.size())))]
        .parameters.push_back(i);
  plan.groups.erase(std::remove_if(plan.groups.begin(), plan.groups.end(),
                                   [](const GroupPlan& g) { return g.parameters.empty(); }),
                    plan.groups.end());
  for (auto& group : plan.groups) {
    group.how = drawn.below(3);
    if (drawn.coin(0.4)) group.lr = plan.lr * drawn.any({0.0, 0.5, 1.0});
    if (drawn.coin(0.2)) group.lr = 1e-3;  // as the class has it
    if (drawn.coin(0.4) && plan.kind != "own") group.weight_decay = drawn.any({0.0, 0.01, 0.2});
    if (drawn.coin(0.2) && plan.kind == "SGD") group.momentum = drawn.any({0.0, 0.7});
    if (plan.kind == "own") group.lr = plan.lr * 0.5, group.weight_decay = {};
  }
  if (std::all_of(plan.groups.begin(), plan.groups.end(),
                  [](const GroupPlan& group) { return group.lr == 0.0; }))
    plan.groups[0].lr.reset();  // a schedule of nothing is refused
  const auto some_step = [&](double probability) {
    return drawn.coin(probability) ? drawn.between(1, plan.steps) : -1;
  };
  const auto some_report = [&](double probability) {
    const int64_t step = some_step(probability);
    return step % plan.report_every == 0 || step == plan.steps ? step : -1;
  };
  plan.eval_at = some_report(0.3),
  plan.rate_at = plan.ranks > 1 ? some_report(0.6) : some_report(0.2),
  plan.draw_at = some_report(0.2);
  plan.report_throws = some_report(0.3), plan.loss_throws = some_step(0.15),
  plan.stop_at = some_step(0.3), plan.stop_throws = some_step(0.15);
  plan.resumes = drawn.coin(), plan.nan_at = static_cast<double>(some_step(0.08));
  std::string what = plan.kind + ", " + std::to_string(plan.groups.size()) + " groups, " +
                     std::to_string(plan.steps) + " steps";
  const auto say = [&](const char* name, int64_t value) {
    if (value > 0) what += std::string(", ") + name + " " + std::to_string(value);
  };
  say("ranks", plan.ranks), say("micro", plan.micro), say("save every", plan.save_every),
      say("report every", plan.report_every);
  say("head outside", plan.head), say("schedule", plan.schedule), say("listed twice", plan.twice),
      say("pads", plan.pads), say("reordered", plan.reorders);
  say("eval at", plan.eval_at), say("rate at", plan.rate_at), say("draws at", plan.draw_at),
      say("report throws at", plan.report_throws);
  say("loss throws at", plan.loss_throws), say("stop at", plan.stop_at),
      say("stop throws at", plan.stop_throws), say("resumes", plan.resumes);
  say("NaN at", static_cast<int64_t>(plan.nan_at)), say("dropout", plan.dropout > 0),
      say("clips", plan.clip > 0);
  for (const auto& group : plan.groups)
    if (group.how > 0 && (group.lr || group.weight_decay))
      say("options set by reference", group.how);
  drawn.did(what);
  return plan;
}

}  // namespace posenc::differential
