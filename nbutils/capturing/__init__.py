"""What the neurons of any PyTorch model did: in go a model and examples, out come arrays, one column per neuron.

Which layers there are, how their outputs are read, what a model is shown, and what runs beside its forward pass.
"""
