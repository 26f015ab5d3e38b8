# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Fine-tunes a small language model with and without compressed activations. To be read from top to bottom:

    python training/fine_tune.py --plot curves.png

A GPT of characters learns from the help that Python has. Then it is fine-tuned on the licences that Debian has
(/usr/share/common-licenses), and tested on one that it has never read.
"""

# %% What is needed, and what can be set
import argparse
import copy
import statistics
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import torch
from torch import nn

import furl_torch
from data import load_text, rows_of
from nets import GPT
from report import mean_and_deviation, smooth
from train import accuracy_of, saved_bytes_of

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--pretraining", type=int, default=1000, help="steps on Python's help")
parser.add_argument("--steps", type=int, default=100, help="of fine-tuning")
parser.add_argument("--batch", type=int, default=8, help="texts of 64 characters")
parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="of the order of the texts, and of noise")
parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
parser.add_argument("--plot", type=Path, help="draw the loss curves: a PNG")
settings = parser.parse_args()
device = torch.device(settings.device)
torch.manual_seed(0)

# %% Two texts
# Some licences are versions of each other. Apache-2.0 has no relative among them, so the model is tested on that one.
UNSEEN = "Apache-2.0"
folder = Path("/usr/share/common-licenses")
files = sorted(f for f in folder.glob("*") if not f.is_symlink())
if UNSEEN not in [f.name for f in files]:
    sys.exit(f"{folder} has no {UNSEEN}: Debian's package base-files brings it")
licences = {f.name: f.read_text("utf-8", "replace") for f in files}
unseen = rows_of(licences.pop(UNSEEN), 64, device)
texts = {"help": load_text("train", device), "licences": rows_of("".join(licences.values()), 1, device)}
print("characters: " + ", ".join(f"{name} {len(inputs) + 64}" for name, (inputs, _) in texts.items())
      + f", {UNSEEN} {unseen[0].numel()}")


# %% One step
# This is all that compression changes in a program: the forward pass and the loss are computed inside of `with`.
def step(model, optimizer, context, inputs, labels):
    with context:
        logits = model(inputs)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


# %% Pre-training, without compression
# In its place you would have from_pretrained.
pretrained = GPT().to(device)
optimizer = torch.optim.Adam(pretrained.parameters(), lr=1e-3)
inputs, labels = texts["help"]
losses = []
for chosen in torch.randint(len(inputs), (settings.pretraining, settings.batch)).to(device):
    losses.append(step(pretrained, optimizer, nullcontext(), inputs[chosen], labels[chosen]))
print(f"pre-trained: the loss is {smooth(losses, 50)[-1]:.3f} on the help")

# %% Ways of fine-tuning
# bits="auto" measures once how much the error of each tensor harms the gradient, and gives more bits to those that harm
# it more. All together take no more bytes than with 2 bits each.
CODECS = {
    "no compression": None,
    "2 bits": {"bits": 2},
    "1 bit": {"bits": 1},
    "a mean of 2 bits": {"bits": "auto", "mean_bits": 2},
}


# %% Fine-tuning
# Each way begins with the same weights and, for one seed, has the same batches.
def test(model):
    """Loss and accuracy, in percent, for the licence that was not read."""
    with torch.no_grad():
        logits = model(unseen[0])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), unseen[1].flatten()).item()
    return loss, accuracy_of(model, *unseen)


def fine_tune(start, codec, seed):
    """Losses of all steps, loss and accuracy of the test, bytes kept in the last step, seconds of a step."""
    torch.manual_seed(seed)
    furl_torch.manual_seed(seed)
    model = copy.deepcopy(start).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    inputs, labels = texts["licences"]
    order = torch.randint(len(inputs), (settings.steps, settings.batch)).to(device)
    context = furl_torch.compress_saved(**codec) if codec else nullcontext()
    if codec and codec["bits"] == "auto":
        x, y = inputs[order[0]], labels[order[0]].flatten()
        context.measure(lambda: nn.functional.cross_entropy(model(x).flatten(0, 1), y), relative=True)  # as for Adam
    losses, seconds = [], []
    for chosen in order:
        begin = time.process_time()
        losses.append(step(model, optimizer, context, inputs[chosen], labels[chosen]))
        seconds.append(time.process_time() - begin)
    kept = context.stats().total.bytes_after if codec else saved_bytes_of(model, inputs[order[-1]])
    return losses, *test(model), kept, statistics.median(seconds)


runs = {name: [fine_tune(pretrained, codec, seed) for seed in settings.seeds] for name, codec in CODECS.items()}
torch.manual_seed(0)
runs["no pre-training"] = [fine_tune(GPT().to(device), None, seed) for seed in settings.seeds]

# %% The table
# The training loss is the mean of the last quarter of the steps. Means and deviations are over the seeds, and seconds
# are of the processor.
num_last = max(1, settings.steps // 4)
plain_bytes = runs["no compression"][0][3]
print(f"{'':20}{'training loss':>16} {'loss, ' + UNSEEN:>18} {'accuracy, %':>18} {'kept, MB':>8} {'ratio':>6}"
      f" {'s/step':>7}")
print(f"{'not fine-tuned':37}{test(pretrained)[0]:7.3f}{'':12}{test(pretrained)[1]:7.3f}")
for name, some in runs.items():
    losses, tested, accuracies, (kept, *_), seconds = zip(*some)
    ends = [statistics.mean(of_steps[-num_last:]) for of_steps in losses]
    print(f"{name:20}{mean_and_deviation(ends)} {mean_and_deviation(tested):>18} "
          f"{mean_and_deviation(accuracies):>18} {kept / 1e6:8.3f} {plain_bytes / kept:5.1f}x "
          f"{statistics.median(seconds):7.3f}")

# %% The curves
# Means over the seeds. Since the batches are the same, what compression does to the loss shows best as a difference.
if settings.plot:
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    curves = {name: [statistics.mean(values) for values in zip(*(losses for losses, *_ in some))]
              for name, some in runs.items()}
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4))
    for name, curve in curves.items():
        left.plot(smooth(curve, 8), linewidth=1, label=f"{name}: {runs[name][0][3] / 1e6:.2f} MB kept")
        difference = [loss - plain for loss, plain in zip(curve, curves["no compression"])]
        right.plot(smooth(difference, 8) if name in CODECS else [], linewidth=1)
    left.set(title="A small GPT, fine-tuned on licences", xlabel="step", ylabel="cross entropy")
    left.legend()
    right.set(title="The same, minus that without compression", xlabel="step", ylabel="difference")
    figure.tight_layout()
    figure.savefig(settings.plot, dpi=75)

# %% What should be so
# Compression leaves most of what fine-tuning gains, and keeps a ninth of the bytes or less.
gained = {name: test(pretrained)[0] - statistics.mean(tested for _, tested, *_ in some) for name, some in runs.items()}
for name, codec in CODECS.items():
    kept = runs[name][0][3]
    if gained[name] < 0.8 * gained["no compression"]:
        sys.exit(f"{name}: the loss falls by {gained[name]:.4f}, without compression by {gained['no compression']:.4f}")
    if codec and 9 * kept > plain_bytes:
        sys.exit(f"{name}: {kept} bytes are kept of {plain_bytes}")
